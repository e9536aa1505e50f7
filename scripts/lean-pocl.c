// Writes a library of PoCL's built-in functions without those that no kernel calls: `lean-pocl FROM TO WIDE`. WIDE is a
// pattern of the names that kernels call with vectors of any size. PoCL 3.1 reads the whole library in each process that
// builds a program. This file calls LLVM's C API, in the version that PoCL uses.
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct Opaque* Ref;
Ref LLVMContextCreate(void);
int LLVMCreateMemoryBufferWithContentsOfFile(const char* path, Ref* buffer, char** message);
int LLVMParseBitcodeInContext2(Ref context, Ref buffer, Ref* module);
int LLVMStripModuleDebugInfo(Ref module);
int LLVMWriteBitcodeToFile(Ref module, const char* path);
Ref LLVMGetFirstFunction(Ref module);
Ref LLVMGetNextFunction(Ref function);
Ref LLVMGetFirstUse(Ref function);
const char* LLVMGetValueName2(Ref function, size_t* length);
void LLVMDeleteFunction(Ref function);

static bool has(const char* name, const char* part) { return strstr(name, part) != NULL; }

// Names are mangled: Dv3_ is a vector of 3 elements. scripts/drivers leaves out the declarations of these functions.
static bool no_kernel_calls(const char* name, const regex_t* wide)
{
    if (has(name, "image") || has(name, "pixel") || has(name, "shuffle") || has(name, "remquo")) {
        return true;
    }
    if (has(name, "Dv") && (has(name, "_rt") || has(name, "half"))) {
        return true;
    }
    const bool is_wide = has(name, "Dv3_") || has(name, "Dv8_") || has(name, "Dv16_");
    return is_wide && regexec(wide, name, 0, NULL, 0) != 0;
}

int main(int count, char** arguments)
{
    Ref buffer, module;
    char *message, pattern[1024];
    regex_t wide;
    if (count != 4 || snprintf(pattern, sizeof pattern, "^_Z[0-9]+(_cl_)?%s", arguments[3]) >= (int)sizeof pattern ||
        regcomp(&wide, pattern, REG_EXTENDED) ||
        LLVMCreateMemoryBufferWithContentsOfFile(arguments[1], &buffer, &message) ||
        LLVMParseBitcodeInContext2(LLVMContextCreate(), buffer, &module)) {
        fputs("lean-pocl: no library\n", stderr);
        return 1;
    }
    // A function whose last caller is gone can be left out, too.
    for (bool again = true; again;) {
        again = false;
        for (Ref next, function = LLVMGetFirstFunction(module); function != NULL; function = next) {
            size_t length;
            next = LLVMGetNextFunction(function);
            if (LLVMGetFirstUse(function) == NULL && no_kernel_calls(LLVMGetValueName2(function, &length), &wide)) {
                LLVMDeleteFunction(function);
                again = true;
            }
        }
    }
    LLVMStripModuleDebugInfo(module);
    return LLVMWriteBitcodeToFile(module, arguments[2]) != 0;
}
