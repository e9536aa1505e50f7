// The least that an OpenCL program does before its first result: platforms, a context, a queue, one kernel, one launch.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    if ((call) != CL_SUCCESS) {                                                                                        \
        fprintf(stderr, "%s failed\n", #call);                                                                         \
        return 1;                                                                                                      \
    }

// The first argument is a part of the platform's name.
int main(int count, char** words)
{
    cl_platform_id platforms[16], platform = 0;
    cl_uint found = 0;
    CHECK(clGetPlatformIDs(16, platforms, &found));
    for (cl_uint i = 0; i < found && i < 16; i++) {
        char name[256] = "";
        CHECK(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL));
        if (platform == 0 && (count < 2 || strstr(name, words[1]))) {
            platform = platforms[i];
        }
    }
    cl_device_id device;
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    const char* text = "__kernel void set(__global int* x) { x[get_global_id(0)] = 1; }";
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "set", NULL);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
    size_t items = 1024;
    int first = 0;
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof first, &first, 0, NULL, NULL));
    return first != 1;
}
