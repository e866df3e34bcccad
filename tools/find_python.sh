#!/bin/sh
# Prints a Python that is new enough, or says what to install.
# $PYTHON, where set, is the only candidate.

enough='import sys; raise SystemExit(sys.version_info < (3, 11))'

if [ -n "$PYTHON" ]; then
    candidates=$PYTHON
else
    candidates="python3 python3.13 python3.14 python3.12 python3.11 python"
fi

for python in $candidates; do
    # A name may be there and not run: a pyenv shim, the Windows store's stand-in.
    if "$python" -c "$enough" >/dev/null 2>&1; then
        command -v "$python"
        exit 0
    fi
done

{
    echo "asyncgpu_tutor needs Python 3.11 or newer, and found none."
    for python in $candidates; do
        version=$("$python" --version 2>&1) && echo "  $python is $version"
    done
    echo "Install one from python.org, Homebrew, apt or conda, or name it: make lab PYTHON=/path/to/python3.12"
} >&2
exit 1
