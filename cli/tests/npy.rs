//! Unit tests of the reader of .npy files.

#[path = "common/npy.rs"]
mod reader;

use std::{
    env,
    time::{Duration, Instant},
};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use reader::{check, npy::Made};

/// The bytes of a file: version of the format, header text and data.
fn file(version: u8, text: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend(u16::try_from(text.len()).expect("a short header").to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    [&bytes, text, data].concat()
}

/// The result of reading a file with this header text and data.
fn read(text: &str, data: &[u8]) -> Result<(Vec<usize>, String, Vec<u8>), String> {
    check(&file(1, text.as_bytes(), data))
        .map(|array| (array.shape.clone(), array.type_name(), array.elements::<u8>().to_vec()))
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

/// The error line for a file with this header text and data.
fn refused(text: &str, data: &[u8]) -> String {
    read(text, data).expect_err("refused")
}

#[test]
fn nested_brackets_are_refused_at_once() {
    for bracket in ["[", "(", "{", "{'descr': [", "{'descr':(", "{'shape': (", "'"] {
        for depth in [12, 24, 5_000 / bracket.len()] {
            let text = bracket.repeat(depth);
            let start = Instant::now();
            read(&text, &[]).expect_err("no header");
            read(&header(&text, "False", "()"), &[]).expect_err("no header");
            read(&header("'<f4'", &text, "()"), &[]).expect_err("no header");
            read(&header("'<f4'", "False", &text), &[]).expect_err("no header");
            assert!(start.elapsed() < Duration::from_secs(1), "{depth} times {bracket} took {:?}", start.elapsed());
        }
    }
    let nested = header("'<f4'", "False", &format!("{}1,{}", "(".repeat(5_000), ")".repeat(5_000)));
    let text = check(&file(2, nested.as_bytes(), &[])).expect_err("refused");
    assert_eq!(text, format!("its header has {} bytes, expected at most 10000", nested.len()));
}

#[test]
fn each_spelling_of_a_type_is_read() {
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    for (names, found) in [
        (&["<f8", "=f8", "|f8", "f8", "d", "float64"][..], format!("{native}f8")),
        (&["<i8", "=i8", "|i8", "i8", "q", "int64"], format!("{native}i8")),
        (&["|b1", "b1", "?", "bool", "<b1", ">b1"], "|b1".into()),
        (&["|u1", "u1", "B", "uint8", "<u1"], "|u1".into()),
        (&["<f2", "e", "float16"], format!("{native}f2")),
        (&["<c16", "D", "complex128"], format!("{native}c16")),
        (&["<M8[ns]", "M8[ns]"], format!("{native}M8[ns]")),
        (&["<m8[25s]"], format!("{native}m8[25s]")),
        (&["|S3", "S3", "a3"], "|S3".into()),
        (&["<U2", "U2"], format!("{native}U2")),
        (&["|V5", "V5"], "|V5".into()),
    ] {
        for name in names {
            for quote in ['\'', '"'] {
                let text = header(&format!("{quote}{name}{quote}"), "False", "(0,)");
                assert_eq!(read(&text, &[]), Ok((vec![0], found.clone(), vec![])), "{name}");
            }
        }
    }
    for name in [
        "",
        "f",
        "<",
        "f3",
        "i16",
        "x4",
        "i4x",
        "<<i4",
        "M8[",
        "M8[]",
        "M8[n;s]",
        "f8[ns]",
        "b2",
        "é",
        "U4611686018427387904",
        "S99999999999999999999",
    ] {
        // A single letter is a valid type by itself.
        if name == "f" {
            continue;
        }
        let text = refused(&header(&format!("'{name}'"), "False", "(0,)"), &[]);
        assert!(text.contains("is unknown") || text.contains("not a .npy file"), "{name}: {text}");
    }
    for name in ["S0", "|V0", "U", "V"] {
        assert!(refused(&header(&format!("'{name}'"), "False", "(1,)"), &[]).ends_with("have no size"), "{name}");
    }
}

#[test]
fn records_and_objects_are_refused_by_name() {
    let records = [
        "[('a', '<f4')]",
        "[('a', '<f4', (2, 2)), ('b', [('c', '|u1')])]",
        "('<f4', (2,))",
        "'f4,i4'",
        "'(2,)f4'",
        "{'names': ['a']}",
    ];
    for descr in records {
        assert!(refused(&header(descr, "False", "(1,)"), &[0; 64]).starts_with("holds records"), "{descr}");
    }
    for descr in ["'|O'", "'O'", "'|O8'"] {
        assert!(refused(&header(descr, "False", "(1,)"), &[0; 8]).starts_with("holds Python objects"), "{descr}");
    }
}

#[test]
fn headers_of_every_writer_are_read() {
    let want = Ok((vec![2], "|u1".to_owned(), vec![7, 8]));
    for text in [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2L,)}\n",
        "{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(2,)}",
        "  { 'shape' : ( 2 , ) ,\n\t'fortran_order' : True , 'descr' : '|u1' }   \n",
    ] {
        assert_eq!(read(text, &[7, 8]), want, "{text}");
        for version in [2, 3] {
            let array = check(&file(version, text.as_bytes(), &[7, 8]));
            // Python 2 never wrote version 3.
            assert_eq!(array.is_ok(), version == 2 || !text.contains('L'), "{version}: {text}");
        }
    }
    let no_axes = read(&header("'|u1'", "False", "()"), &[9]);
    assert_eq!(no_axes, Ok((vec![], "|u1".into(), vec![9])));
    let most = format!("({})", "1, ".repeat(64));
    assert_eq!(read(&header("'|u1'", "False", &most), &[9]), Ok((vec![1; 64], "|u1".into(), vec![9])));
    let more = format!("({})", "1, ".repeat(65));
    assert_eq!(refused(&header("'|u1'", "False", &more), &[9]), "its shape has more than 64 axes");
}

#[test]
fn invalid_headers_are_refused_in_one_line() {
    let good = header("'<f4'", "False", "(1,)");
    for (text, why) in [
        ("", "its header ends at byte 0, expected `{`"),
        ("{}", "its header lacks the key 'descr'"),
        ("{'descr': '<f4'}", "its header lacks the key 'fortran_order'"),
        ("{'descr': '<f4', 'fortran_order': False}", "its header lacks the key 'shape'"),
        ("{'descr': '<f4', 'descr': '<f4'}", "its header has the key 'descr' twice"),
        ("{'type': '<f4'}", "its header has a key 'type' besides descr, fortran_order and shape"),
        ("{'descr': '<f4', 'fortran_order': 0}", "expected True or False"),
        ("{'descr': '<f4', 'fortran_order': Falsehood}", "expected True or False"),
        ("{'descr': 'a\\x62'}", "expected the end of a string"),
        ("{'descr", "its header ends at byte 7, expected the end of a string"),
        ("{'descr': '\u{e9}'}", "expected the end of a string"),
        ("{'shape': [1]}", "expected `(`"),
        ("{'shape': (1)}", "expected `,`"),
        ("{'shape': (,)}", "expected a length"),
        ("{'shape': (1,,)}", "expected a length"),
        ("{'shape': (1.5,)}", "expected `)`"),
        ("{'shape': (01,)}", "expected a length"),
        ("{'shape': (True,)}", "expected a length"),
        ("{'shape': (-1,)}", "its shape has a negative length, -1"),
        ("{'shape': (18446744073709551616,)}", "its shape has a length of 18446744073709551616, which overflows"),
    ] {
        let found = refused(text, &[0; 4]);
        assert!(found.ends_with(why), "{text}: {found}");
    }
    for tail in ["x", "#", "{}", "\0"] {
        assert!(refused(&format!("{}{tail}", good.trim_end()), &[0; 4]).ends_with("expected the end"), "{tail}");
    }
    for shape in ["(4611686018427387904,)", "(2147483648, 2147483648, 2)", "(0, 4611686018427387904, 4)"] {
        let text = refused(&header("'<f4'", "False", shape), &[0; 4]);
        assert!(text.ends_with("overflows memory"), "{text}");
    }
}

#[test]
fn files_of_wrong_length_are_refused_in_one_line() {
    let text = header("'<f4'", "False", "(2, 3)");
    let whole = file(1, text.as_bytes(), &[1; 24]);
    check(&whole).expect("a whole file");
    for len in 0..whole.len() {
        let why = check(&whole[..len]).expect_err("truncated");
        assert!(why.starts_with("truncated: ") || why.starts_with("not a .npy file: it "), "{len}: {why}");
    }
    assert_eq!(
        check(&whole[..whole.len() - 5]).expect_err("truncated"),
        "truncated: [2, 3] <f4 are 24 bytes, the file has 19 of them"
    );
    assert_eq!(check(&[&whole[..], &[0; 7]].concat()).expect_err("longer"), "7 bytes follow the array");
    let mut beyond = whole.clone();
    beyond[8..10].copy_from_slice(&9999u16.to_le_bytes());
    let why = check(&beyond).expect_err("a header beyond the file");
    assert_eq!(why, format!("truncated: its header has 9999 bytes, the file has {} of them", whole.len() - 10));
    for (version, why) in [([0, 0], "0.0"), ([1, 1], "1.1"), ([4, 0], "4.0")] {
        let mut other = whole.clone();
        other[6..8].copy_from_slice(&version);
        assert_eq!(check(&other).expect_err("unknown"), format!("its version is {why}, expected 1.0, 2.0 or 3.0"));
    }
    // Memory grows with the data read, not with the length that a header claims.
    let claims = file(1, header("'<f8'", "False", "(1152921504606846975,)").as_bytes(), &[0; 16]);
    assert!(check(&claims).expect_err("truncated").starts_with("truncated: "));
}

/// A file as NumPy could have written it, and the bytes of its elements in C order and native byte order.
#[derive(Clone, Debug)]
struct Written {
    version: u8,
    text: String,
    data: Vec<u8>,
    shape: Vec<usize>,
    elements: Vec<u8>,
}

fn arrays() -> impl Strategy<Value = Written> {
    let types = prop::sample::select(vec![
        ("u1", 1, 1),
        ("i2", 2, 2),
        ("f4", 4, 4),
        ("u8", 8, 8),
        ("c8", 8, 4),
        ("c16", 16, 8),
        ("S3", 3, 1),
        ("U3", 12, 4),
        ("U5", 20, 4),
        ("V17", 17, 1),
    ]);
    let lengths = prop::collection::vec(0usize..4, 0..6).prop_flat_map(|few| {
        // Some arrays have many axes of length 1 or 2.
        let many = prop::collection::vec(1usize..3, 0..12);
        let ones = prop::collection::vec(Just(1usize), 0..40);
        prop_oneof![3 => Just(few), 1 => many, 1 => ones]
    });
    (types, lengths, any::<bool>(), any::<bool>(), 1u8..4, any::<u64>()).prop_map(
        |((name, size, scalar), shape, fortran, big, version, seed)| {
            let len: usize = shape.iter().product();
            let mut state = seed;
            let mut byte = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            };
            let elements: Vec<u8> = (0..len * size).map(|_| byte()).collect();
            let mut data = vec![0; len * size];
            for i in 0..len {
                // `at` is the offset in the file of element i in C order.
                let (mut left, mut at, mut step) = (i, 0, 1);
                let mut index = vec![0; shape.len()];
                for axis in (0..shape.len()).rev() {
                    index[axis] = left % shape[axis];
                    left /= shape[axis];
                }
                for axis in 0..shape.len() {
                    at += index[axis] * step;
                    step *= shape[axis];
                }
                let at = if fortran { at } else { i };
                for part in (0..size).step_by(scalar) {
                    for k in 0..scalar {
                        let from = if big == cfg!(target_endian = "big") { k } else { scalar - 1 - k };
                        data[at * size + part + k] = elements[i * size + part + from];
                    }
                }
            }
            let order = if scalar == 1 {
                '|'
            } else if big {
                '>'
            } else {
                '<'
            };
            let lengths: String = shape.iter().map(|n| format!("{n}, ")).collect();
            let fortran = if fortran { "True" } else { "False" };
            let text = header(&format!("'{order}{name}'"), fortran, &format!("({lengths})"));
            Written { version, text, data, shape, elements }
        },
    )
}

/// Runs a test with the same random numbers each time, for `OCLPRIM_FUZZ_SECONDS` seconds, 2 by default.
fn for_a_while(run: impl Fn(&mut TestRunner)) {
    let seconds = env::var("OCLPRIM_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        run(&mut runner);
    }
}

#[test]
fn arrays_in_each_order_are_read_as_c_order() {
    for_a_while(|runner| {
        let result = runner.run(&arrays(), |written| {
            let array = check(&file(written.version, written.text.as_bytes(), &written.data)).expect(&written.text);
            prop_assert_eq!(&array.shape, &written.shape);
            prop_assert_eq!(array.elements::<u8>(), &written.elements[..], "{}", written.text);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn changed_bytes_give_an_array_or_a_one_line_error() {
    // Changes insert these parts of headers, or arbitrary bytes.
    const WORDS: [&[u8]; 22] = [
        b"{",
        b"}",
        b"(",
        b")",
        b"[",
        b"]",
        b"'",
        b",",
        b":",
        b"-",
        b"L",
        b"True",
        b"'shape'",
        b"'descr'",
        b"|O",
        b">",
        b"99999999999",
        b"18446744073709551615",
        b"0",
        b"\\",
        b"\n",
        b"\x00",
    ];
    let change = (
        any::<prop::sample::Index>(),
        0usize..4,
        prop_oneof![
            2 => prop::sample::select(&WORDS[..]).prop_map(<[u8]>::to_vec),
            1 => prop::collection::vec(any::<u8>(), 0..4),
        ],
    );
    let changed = (arrays(), prop::collection::vec(change, 0..5), any::<bool>());
    for_a_while(|runner| {
        let result = runner.run(&changed, |(written, changes, anywhere)| {
            let mut text = written.text.into_bytes();
            let mut whole = file(written.version, &text, &written.data);
            for (at, removed, new) in changes {
                let bytes = if anywhere { &mut whole } else { &mut text };
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..(at + removed).min(bytes.len()), new);
            }
            // Either only the text of the header changes, or any bytes of the file.
            let _ = check(&if anywhere { whole } else { file(written.version, &text, &written.data) });
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn written_files_are_read_by_another_reader() {
    let shape = [2, 1, 3];
    let name = if cfg!(target_endian = "big") { ">f4" } else { "<f4" };
    let bytes = reader::bytes_of(&Made::of(name, &shape, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!((bytes.len() - 24) % 64, 0);
    let file = npyz::NpyFile::new(&bytes[..]).expect("a header");
    assert_eq!(file.shape(), [2, 1, 3]);
    assert_eq!(file.into_vec::<f32>().expect("elements"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let most = reader::bytes_of(&Made::of::<u8>("|u1", &[usize::MAX; 64], &[]));
    assert!(most.len() < 1 << 16 && check(&most).is_err());
}

#[test]
fn numbers_print_in_the_fewest_digits_that_read_back() {
    use reader::npy::number;
    for (value, text) in [
        (1e300, "1e300"),
        (-2.5e-300, "-2.5e-300"),
        (0.1, "0.1"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1e15, "1000000000000000"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (9e-6, "9e-6"),
        (f64::INFINITY, "inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(number(value), text);
    }
    assert_eq!(
        (number(0.1f32), number(3.4028235e38f32), number(16_777_216f32)),
        ("0.1".into(), "3.4028235e38".into(), "16777216".into())
    );
    for bits in 0..=u16::MAX {
        let value = half::f16::from_bits(bits);
        let text = number(value);
        let back = half::f16::from_f64(text.parse().expect("a number"));
        assert!(back == value || value.is_nan(), "{bits:#x}: {text}");
        assert!(text.len() <= 12, "{bits:#x}: {text}");
    }
    assert_eq!(number(half::f16::from_f32(0.1)), "0.1");
    assert_eq!((number(i64::MIN), number(u64::MAX)), (i64::MIN.to_string(), u64::MAX.to_string()));
}
