#!/bin/sh
# Records all reports of the class: sh record.sh [FOLDER]. Needs an NVIDIA GPU, CuPy and Nsight Systems.
# NSYS names the profiler and PYTHON the interpreter, if they are not on the PATH.
set -eu
out=${1:-reports}
here=$(cd "$(dirname "$0")" && pwd)
nsys=${NSYS:-nsys}
python=${PYTHON:-python}
mkdir -p "$out"
"$nsys" --version > "$out/version.txt"

# $1 is the name of the report, $2 the options that say when to record, and the rest is the program.
record() {
    name=$1 range=$2
    shift 2
    # The environment is a part of every report, so it is kept empty.
    env -i PATH="$PATH" HOME=/tmp PYTHONPATH="$here/../../tools${PYTHONPATH:+:$PYTHONPATH}" \
        LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" ASYNCGPU_NVTX=1 \
        ${NCCL_NVLS_ENABLE:+NCCL_NVLS_ENABLE="$NCCL_NVLS_ENABLE"} \
        "$nsys" profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-event-trace=true \
        --cuda-graph-trace=node $range --force-overwrite=true --output="$out/$name" "$python" "$@"
    "$nsys" export --type=sqlite --force-overwrite=true --output="$out/$name.sqlite" "$out/$name.nsys-rep"
    "$nsys" stats --report=cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_api_sum,nvtx_sum,nvtx_gpu_proj_sum \
        "$out/$name.sqlite" > "$out/$name.stats.txt"
}

within="--capture-range=cudaProfilerApi --capture-range-end=stop"
for letter in A B C D E F G; do
    record "exhibit_$letter" "$within" "$here/exhibit.py" "$letter"
    record "exhibit_${letter}_repaired" "$within" "$here/exhibit.py" "$letter" --repaired
done
for program in heat heat_annotated heat_looks_less heat_repaired; do
    "$python" "$here/$program.py" # compiles its kernels; CuPy keeps them on the disk
    record "$program" "" "$here/$program.py"
done
record swarm "$within" "$here/swarm.py"
if [ "$(nvidia-smi --list-gpus | wc -l)" -ge 2 ]; then
    record two_gpus "$within" "$here/two_gpus.py"
    record two_gpus_even "$within" "$here/two_gpus.py" --even
fi
ls -l "$out"
