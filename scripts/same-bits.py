"""Compares the files that two builds of the program write: same-bits.py PROGRAM WORD...

The words are the other build's command, such as `wine64 oclprim.exe`. Both run the same commands on the CPU. Standard output and
files must have the same bytes, but the byte order of a file may differ. So may the bits of a NaN that an operation makes.
"""

import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

N = 40_000
LIMIT = 300
# The programs run in a folder of their own.
PATHS = [str(Path(word).resolve()) if Path(word).is_file() else word for word in sys.argv[1:]]
REFERENCE, OTHER = PATHS[:1], PATHS[1:]
RANDOM = random.Random(1)
# NaN of both signs, quiet and signalling; zeros, subnormals, infinities, the largest.
SPECIAL = {
    2: [0x7E00, 0xFE01, 0x7D01, 0xFC01, 0x0000, 0x8000, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7BFF],
    4: [0x7FC00000, 0xFFC00001, 0x7FA00001, 0xFF800001, 0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF],
    8: [
        0x7FF8 << 48, 0xFFF8 << 48 | 1, 0x7FF4 << 48 | 1, 0xFFF0 << 48 | 1, 0, 1 << 63, 1, 0x800F_FFFF_FFFF_FFFF,
        0x7FF0 << 48, 0xFFF0 << 48, 0x7FEF_FFFF_FFFF_FFFF,
    ],
}  # fmt: skip
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def write(path, kind, shape, payload):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust((len(text) + 11 + 63) // 64 * 64 - 11) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + payload)


def bits(size, words):
    return struct.pack(f"<{len(words)}{CODES[size]}", *words)


def specials(size, n):
    """Floats of any bits, every 7th of them special."""
    return [RANDOM.choice(SPECIAL[size]) if i % 7 == 0 else RANDOM.getrandbits(8 * size) for i in range(n)]


def numbers(code, n):
    """Floats without NaN and infinities, some of them subnormal or zero."""
    tiny = {"e": 2.0**-24, "f": 2.0**-149, "d": 2.0**-1074}[code]
    pick = lambda i: RANDOM.choice([-0.0, 0.0, tiny, -3 * tiny]) if i % 7 == 0 else RANDOM.uniform(-1, 1)
    return struct.pack(f"<{n}{code}", *(pick(i) for i in range(n)))


def make_inputs(folder):
    for size, code in [(2, "e"), (4, "f"), (8, "d")]:
        write(folder / f"f{size}.npy", f"<f{size}", (N,), numbers(code, N))
        write(folder / f"f{size}nan.npy", f"<f{size}", (N,), bits(size, specials(size, N)))
        matrix = bits(size, specials(size, 200 * 190))
        write(folder / f"f{size}m.npy", f"<f{size}", (200, 190), matrix)
        big = struct.pack(f">{200 * 190}{CODES[size]}", *struct.unpack(f"<{200 * 190}{CODES[size]}", matrix))
        write(folder / f"f{size}big.npy", f">f{size}", (200, 190), big)
    for size, kind in [(1, "|u1"), (8, "<i8")]:
        name = f"{kind[1]}{size}"
        words = [RANDOM.getrandbits(8 * size) for _ in range(N)]
        write(folder / f"{name}.npy", kind, (N,), bits(size, words))
        write(folder / f"{name}m.npy", kind, (200, 190), bits(size, words[: 200 * 190]))
        few = [RANDOM.randrange(5) for _ in range(N)]
        write(folder / f"{name}few.npy", kind, (N,), bits(size, few))


def commands():
    """Arguments of `oclprim run`, and whether an operation makes the floats of the output."""
    for name in ["u1", "i8", "f2", "f4", "f8", "f2nan", "f4nan", "f8nan"]:
        file = f"{name}.npy"
        for op in ["sum", "product", "min", "max", "arg-min", "min-max"]:
            yield ["reduce", file, "--op", op], op in ("sum", "product")
        yield ["scan", file], True
        yield ["scan", file, "--op", "max", "--exclusive"], False
        yield ["sort", file], False
        yield ["sort", file, "--descending"], False
        yield ["topk", file, "--k", "100", "--sorted"], False
        yield ["topk", file, "--k", "37", "--smallest", "--indices"], False
        yield ["unique", file], False
        if name.startswith("f") and "nan" not in name:
            yield ["histogram", file, "--bins", "20"], False
            yield ["histogram", file, "--bins", "20", "--weights", file], True
            yield ["quantile", file, "--q", "0.1,0.5"], True
    for name in ["u1few", "i8few"]:
        yield ["histogram", f"{name}.npy", "--bins", "5"], False
        yield ["histogram", f"{name}.npy", "--bins", "5", "--weights", "i8.npy"], False
        yield ["histogram", f"{name}.npy", "--bins", "5", "--weights", "f8.npy"], True
        yield ["unique", f"{name}.npy"], False
        yield ["rle", f"{name}.npy", "--lengths", "second.npy"], False
    for name in ["u1m", "i8m", "f2m", "f4m", "f8m", "f2big", "f4big", "f8big"]:
        yield ["transpose", f"{name}.npy"], False
        yield ["reduce", f"{name}.npy", "--axis", "0"], True
        yield ["statistics", f"{name}.npy", "--axis", "1"], True
    for name in ["u1", "i8", "f2", "f4", "f8"]:
        yield ["transpose", f"{name}m.npy", "--cast", "f32", "--scale", "0.5"], True
        yield ["transpose", f"{name}m.npy", "--cast", "i16"], False
        yield ["statistics", f"{name}.npy"], True
    for kind in ["u8", "i64", "f16", "f32", "f64"]:
        yield ["random", "10007", "--type", kind], False
        yield ["random", "10007", "--type", kind, "--range", "1", "7"], True


def parse(data):
    header = data[10 : 10 + struct.unpack("<H", data[8:10])[0]].decode()
    order, kind, size = re.search(r"'descr': '(.)(.)(\d+)'", header).groups()
    return header.replace(f"'{order}{kind}", f"'?{kind}"), order, kind, int(size), data[10 + len(header) :]


def elements(data, made):
    """The header without byte order, and the bits of the elements as integers. If `made`, all NaN are the same integer."""
    header, order, kind, size, payload = parse(data)
    words = struct.unpack(f"{'>' if order == '>' else '<'}{len(payload) // size}{CODES[size]}", payload)
    if made and kind == "f":
        exponent = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0 << 48}[size]
        words = [-1 if word & ((1 << (8 * size - 1)) - 1) > exponent else word for word in words]
    return header, list(words)


def run(program, folder, arguments, output):
    command = [*program, "run", *arguments, "--device", "cpu", *output]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    files = {name: (folder / name).read_bytes() for name in ["out.npy", "second.npy"] if (folder / name).exists()}
    for name in files:
        (folder / name).unlink()
    return done.returncode, done.stdout, files, done.stderr.decode(errors="replace")


def difference(arguments, made, folder):
    """The difference between the outputs of both builds for a command; None if there is none."""
    one, two = (run(program, folder, arguments, ["-o", "out.npy"]) for program in [REFERENCE, OTHER])
    if one[0] != 0 or two[0] != 0:
        return f"exit codes {one[0]} and {two[0]}: {one[3]}{two[3]}"
    if one[2].keys() != two[2].keys() or "out.npy" not in one[2]:
        return "not the same files"
    kinds = {"same bytes"}
    for name in one[2]:
        if one[2][name] == two[2][name]:
            continue
        own, others = (elements(files[name], False) for files in [one[2], two[2]])
        kinds.add("another byte order" if own == others else "another NaN")
        (header, a), (other, b) = (elements(files[name], made) for files in [one[2], two[2]])
        if (header, a) != (other, b):
            at = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
            found = f"{len(at)} of {len(a)} elements, the first at {at[0]}: {a[at[0]]:#x} {b[at[0]]:#x}" if at else f"{header} {other}"
            return f"{name}: {found}"
    if one[1] != two[1]:
        return f"standard output: {one[1]!r} {two[1]!r}"
    kind = next(kind for kind in reversed(counts) if kind in kinds)
    counts[kind] += 1
    if kind == "another NaN":
        print(f"another NaN: {' '.join(arguments)}", flush=True)
    return None


counts = {"same bytes": 0, "another byte order": 0, "another NaN": 0}
failed = 0
with tempfile.TemporaryDirectory() as name:
    make_inputs(Path(name))
    for arguments, made in commands():
        if text := difference(arguments, made, Path(name)):
            failed += 1
            print(f"FAILED {' '.join(arguments)}: {text}", flush=True)
print(", ".join(f"{count} with {kind}" for kind, count in counts.items()))
print(f"{sum(counts.values())} passed, {failed} failed")
sys.exit(1 if failed else 0)
