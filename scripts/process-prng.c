/* bcryptprimitives.dll for Wine before version 9, which lacks it: Rust's standard library takes its random numbers from there. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG bytes);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *buffer, SIZE_T bytes) {
    const SIZE_T most = 1 << 20;
    while (bytes > 0) {
        const ULONG some = (ULONG)(bytes < most ? bytes : most);
        if (!SystemFunction036(buffer, some)) return FALSE;
        buffer += some;
        bytes -= some;
    }
    return TRUE;
}
