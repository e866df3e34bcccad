"""Right answers to exercises of course/20_the_ladder.py in other forms than the solution's."""


# %% id=20-turn of=starter
# - int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
# - y[col * n + row] = x[row * n + col];
# + int i = threadIdx.x, j = threadIdx.y;
# + tile[j][i ^ j] = x[(blockIdx.y * 32 + j) * n + blockIdx.x * 32 + i];
# + __syncthreads();
# + y[(blockIdx.x * 32 + j) * n + blockIdx.y * 32 + i] = tile[i][i ^ j];
