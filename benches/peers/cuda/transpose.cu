// Transposition by cuBLAS (`geam` with a second factor of 0), and the textbooks' tiles in shared memory.
#include "harness.cuh"

#include <dlfcn.h>

// cuBLAS, opened by dlopen, so that a build needs neither its header nor its library.
struct Blas {
    using Handle = void*;
    int (*create)(Handle*) = nullptr;
    int (*sgeam)(Handle, int, int, int, int, const float*, const float*, int, const float*, const float*, int, float*, int) = nullptr;
    int (*dgeam)(Handle, int, int, int, int, const double*, const double*, int, const double*, const double*, int, double*, int) = nullptr;
    Handle handle = nullptr;
    bool open() {
        void* library = nullptr;
        for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"}) {
            library = library ? library : dlopen(name, RTLD_NOW);
        }
        if (!library) {
            return false;
        }
        create = (decltype(create))dlsym(library, "cublasCreate_v2");
        sgeam = (decltype(sgeam))dlsym(library, "cublasSgeam");
        dgeam = (decltype(dgeam))dlsym(library, "cublasDgeam");
        return create && sgeam && dgeam && create(&handle) == 0;
    }
    int geam(int m, int n, const float* one, const float* in, const float* zero, float* out) {
        return sgeam(handle, 1, 0, m, n, one, in, n, zero, out, m, out, m);
    }
    int geam(int m, int n, const double* one, const double* in, const double* zero, double* out) {
        return dgeam(handle, 1, 0, m, n, one, in, n, zero, out, m, out, m);
    }
};

// Tiles of 32 x 32 with one more column, so that the elements of a column are in different banks. Each thread has four
// elements.
template <class T>
__global__ void by_tiles(const T* in, T* out, size_t rows, size_t cols)
{
    __shared__ T tile[32][33];
    size_t across = (cols + 31) / 32, left = blockIdx.x % across * 32, top = blockIdx.x / across * 32;
    for (unsigned y = threadIdx.y; y < 32; y += 8) {
        if (top + y < rows && left + threadIdx.x < cols) {
            tile[y][threadIdx.x] = in[(top + y) * cols + left + threadIdx.x];
        }
    }
    __syncthreads();
    for (unsigned y = threadIdx.y; y < 32; y += 8) {
        if (left + y < cols && top + threadIdx.x < rows) {
            out[(left + y) * rows + top + threadIdx.x] = tile[threadIdx.x][y];
        }
    }
}

// `n` is the size for which the crate's benchmark case has this shape.
template <class T>
void transposition(const Wanted& wanted, Blas& blas, const std::string& form, const char* element, size_t n, size_t rows, size_t cols)
{
    std::string what = "transpose " + form;
    if (!wanted(what, element, n)) {
        return;
    }
    size_t cells = rows * cols;
    Buffer<T> in(cells), out(cells);
    fill(in, [] __device__(size_t i) { return (T)(mix(i) >> 41); });
    const T *from = in.data, *to = out.data;
    auto wrong = [=] __device__(size_t i) { return to[i % cols * rows + i / cols] != from[i]; };
    out.poison();
    unsigned tiles = (unsigned)((rows + 31) / 32 * ((cols + 31) / 32));
    Times times = measure([&] { by_tiles<<<tiles, dim3(32, 8)>>>(from, out.data, rows, cols); });
    report("CUDA by tiles", what, element, n, 2.0 * cells * sizeof(T), times, total(cells, wrong) == 0);
    if (!blas.handle) {
        return;
    }
    out.poison();
    T one = 1, zero = 0;
    int status = 0;
    times = measure([&] { status |= blas.geam((int)rows, (int)cols, &one, in.data, &zero, out.data); });
    report("cuBLAS", what, element, n, 2.0 * cells * sizeof(T), times, status == 0 && total(cells, wrong) == 0);
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    Blas blas;
    bool there = blas.open();
    for (size_t side : {4096, 8192, 16384}) {
        transposition<float>(wanted, blas, "4-byte elements", "u32", side * side, side, side);
        transposition<double>(wanted, blas, "8-byte elements", "u64", side * side, side, side);
    }
    transposition<float>(wanted, blas, "three times as wide", "f32", 300000000, 10000, 30000);
    transposition<float>(wanted, blas, "odd sides", "f32", size_t(1) << 26, 4097, 8191);
    if (!there) {
        fprintf(stderr, "no cuBLAS\n");
    }
    return there ? 0 : 1;
}
