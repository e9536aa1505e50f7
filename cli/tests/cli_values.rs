//! Values that the program's commands take and print: their types and their text.

#[path = "common/program.rs"]
mod program;

use half::f16;
use program::{Folder, devices, load, oclprim, program, refuses, stderr, stdout, succeeds};

/// The output of a command on the CPU.
fn cpu(words: &[&str]) -> String {
    succeeds(&[&["run"], words, &["--device", "cpu", "--verify"]].concat()).trim().to_owned()
}

/// The output of a command on the CPU, and its text on standard error.
fn cpu_and_notice(words: &[&str]) -> (String, String) {
    let output = oclprim(&[&["run"], words, &["--device", "cpu", "--verify"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    (stdout(&output).trim().to_owned(), stderr(&output))
}

#[test]
fn offsets_with_a_total_keep_the_last_segment() {
    let folder = Folder::new();
    let samples = folder.save("samples.npy", &[7], &[1i32, 1, 2, 5, 5, 5, 7]);
    let [lengths, offsets] = ["lengths.npy", "offsets.npy"].map(|name| folder.path(name));
    let [lengths, offsets] = [&lengths, &offsets].map(|path| path.to_str().expect("UTF-8"));
    for device in devices() {
        let run = |words: &[&str]| {
            let output = oclprim(&[&["run"], words, &["--verify"], &device[..]].concat());
            assert!(output.status.success(), "{words:?}: {}", stderr(&output));
            (stdout(&output).trim().to_owned(), stderr(&output))
        };
        // These are examples of the help text, in their order.
        let nowhere = if cfg!(windows) { "NUL" } else { "/dev/null" };
        run(&["rle", &samples, "-o", nowhere, "--lengths", lengths]);
        run(&["scan", lengths, "--exclusive", "--total", "-o", offsets]);
        assert_eq!(load::<u64>(offsets.as_ref()), (vec![5], vec![0, 2, 3, 6, 7]));
        assert_eq!(run(&["reduce", &samples, "--segments", offsets]), ("2 2 15 7".into(), String::new()));
        // Without the total, the last segment is left out, and a notice says so.
        run(&["scan", lengths, "--exclusive", "-o", offsets]);
        let notice = "1 of 7 elements lie outside all segments: 0 before, 1 after\n";
        for words in [&["--op", "max"][..], &[], &["--as", "f64"]] {
            let (_, found) = run(&[&["reduce", &samples, "--segments", offsets], words].concat());
            assert_eq!(found, notice, "{words:?}");
        }
        let total = |words: &[&str]| run(&[&["scan", &samples, "--exclusive", "--total"], words].concat()).0;
        assert_eq!(total(&["--reverse"]), "26 25 24 22 17 12 7 0");
        assert_eq!(total(&["--op", "max"]), "-2147483648 1 1 2 5 5 5 7");
        assert_eq!(total(&["--op", "product", "--as", "i32"]), "1 1 1 2 10 50 250 1750");
    }
    let inner = folder.save("inner.npy", &[2], &[3u8, 5]);
    let (_, notice) = cpu_and_notice(&["reduce", &samples, "--segments", &inner]);
    assert_eq!(notice, "5 of 7 elements lie outside all segments: 3 before, 2 after\n");
    let matrix = folder.save("matrix.npy", &[2, 2], &[1u8, 2, 3, 4]);
    assert_eq!(cpu(&["scan", &matrix, "--exclusive", "--total"]), "0 1 3 6 10");
    let nothing = folder.save::<f32>("nothing.npy", &[0], &[]);
    assert_eq!(cpu(&["scan", &nothing, "--exclusive", "--total", "--op", "max"]), "-inf");
    for words in [&["--total"][..], &["--total", "--exclusive", "--axis", "0"]] {
        assert_eq!(oclprim(&[&["run", "scan", &samples], words].concat()).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn small_integers_are_added_in_64_bits() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let image = folder.save("image.npy", &[2, 3], &[200u8, 255, 255, 1, 2, 3]);
    let signed = folder.save("signed.npy", &[3], &[-100i8, -100, 100]);
    let truths = folder.save("truths.npy", &[3], &[true, false, true]);
    let offsets = folder.save("offsets.npy", &[3], &[0u8, 3, 6]);
    let keys = folder.save("keys.npy", &[6], &[1u8, 1, 1, 2, 2, 2]);
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run"], words, &["--verify"], &device[..]].concat()).trim().to_owned();
        assert_eq!(run(&["reduce", &image]), "716");
        assert_eq!(run(&["reduce", &image, "--as", "u8"]), "204");
        assert_eq!(run(&["reduce", &image, "--axis", "1"]), "710 6");
        assert_eq!(run(&["reduce", &image, "--axis", "1", "--as", "u8"]), "198 6");
        assert_eq!(run(&["reduce", &image, "--segments", &offsets]), "710 6");
        assert_eq!(run(&["reduce", &image, "--op", "product"]), "78030000");
        assert_eq!(run(&["reduce", &image, "--dot", &image]), "170064");
        assert_eq!(run(&["scan", &image]), "200 455 710\n711 713 716");
        assert_eq!(run(&["scan", &image, "--as", "u8"]), "200 199 198\n199 201 204");
        assert_eq!(run(&["scan", &image, "--axis", "1"]), "200 455 710\n1 3 6");
        assert_eq!(run(&["scan", &image, "--segments", &offsets]), "200 455 710\n1 3 6");
        assert_eq!(run(&["scan", &image, "--keys", &keys]), "200 455 710\n1 3 6");
        assert_eq!(run(&["scan", &signed, "--reverse"]), "-100 0 100");
        run(&["reduce", &signed, "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![], vec![-100]));
        run(&["scan", &truths, "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![3], vec![1, 1, 2]));
        run(&["reduce", &truths, "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![], vec![2]));
        run(&["reduce", &truths, "--as", "u8", "-o", name]);
        assert_eq!(load::<u8>(&output), (vec![], vec![2]));
        run(&["scan", &image, "--as", "f64", "-o", name]);
        assert_eq!(load::<f64>(&output).1, [200.0, 455.0, 710.0, 711.0, 713.0, 716.0]);
    }
    // Operations other than sums and products keep the type.
    cpu(&["scan", &image, "--op", "max", "-o", name]);
    assert_eq!(load::<u8>(&output).1, [200, 255, 255, 255, 255, 255]);
    assert!(refuses(&["run", "scan", &image, "--as", "i8"]).contains("--as: sums of u8 in i8 are not offered"));
    for words in [&["scan", "--op", "min"][..], &["reduce", "--op", "max"]] {
        let words = [&["run", words[0], &image], &words[1..], &["--as", "u64"]].concat();
        assert!(refuses(&words).contains("--as is for sums and products"), "{words:?}");
    }
}

#[test]
fn every_command_takes_booleans() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let truths = folder.save("truths.npy", &[2, 2], &[true, false, false, true]);
    let sorted = folder.save("sorted.npy", &[2], &[false, true]);
    for (words, want) in [
        (&["sort"][..], &[false, false, true, true][..]),
        (&["sort", "--descending"], &[true, true, false, false]),
        (&["select"], &[true, true]),
        (&["select", "--below", "1"], &[false, false]),
        (&["unique"], &[true, false, true]),
        (&["topk", "--k", "1"], &[true]),
        (&["scan", "--op", "or"], &[true, true, true, true]),
        (&["scan", "--op", "min"], &[true, false, false, false]),
        (&["reduce", "--op", "max"], &[true]),
        (&["reduce", "--op", "min-max"], &[false, true]),
        (&["reduce", "--op", "and", "--axis", "0"], &[false, false]),
        (&["reverse"], &[true, false, false, true]),
    ] {
        let words = [&words[..1], &[truths.as_str()], &words[1..], &["-o", name]].concat();
        cpu(&words);
        assert_eq!(load::<bool>(&output).1, want, "{words:?}");
    }
    cpu(&["merge", &sorted, "--with", &sorted, "-o", name]);
    assert_eq!(load::<bool>(&output).1, [false, false, true, true]);
    assert_eq!(cpu(&["search", &sorted, "--needles", &truths]), "1 0\n0 1");
    assert_eq!(cpu(&["rle", &truths]), "1 0 1\n1 2 1");
    assert_eq!(cpu(&["quantile", &truths, "--q", "0.5"]), "0.5");
    assert_eq!(cpu(&["histogram", &truths, "--bins", "2"]), "2 2");
    assert_eq!(cpu(&["histogram", &truths, "--bins", "2", "--weights", &truths]), "0 2");
    assert!(cpu(&["statistics", &truths]).contains("mean      0.5"));
    assert_eq!(cpu(&["reduce", &truths, "--op", "arg-max"]), "1 at index 0");
    assert_eq!(cpu(&["scan", &truths, "--keys", &truths]), "1 0\n0 1");
    // Any byte other than 0 is true.
    let bytes = folder.save("bytes.npy", &[3], &[true, true, false]);
    let mut whole = std::fs::read(&bytes).expect("a file");
    let last = whole.len() - 3;
    whole[last] = 200;
    std::fs::write(&bytes, whole).expect("a file");
    assert_eq!(cpu(&["reduce", &bytes]), "2");
    assert_eq!(cpu(&["unique", &bytes]), "1 0");
}

#[test]
fn bounds_between_values_are_exact() {
    let folder = Folder::new();
    let small = folder.save("small.npy", &[5], &[-128i8, -1, 0, 2, 127]);
    let bytes = folder.save("bytes.npy", &[4], &[0u8, 1, 2, 255]);
    let wide = folder.save("wide.npy", &[3], &[u64::MAX - 1, u64::MAX, 1 << 53]);
    let floats = folder.save("floats.npy", &[5], &[f32::NEG_INFINITY, f32::MIN, 0.1, f32::MAX, f32::INFINITY]);
    for device in devices() {
        let select = |file: &str, words: &[&str]| {
            let words = [&["run", "select", file, "--verify"], words, &device[..]].concat();
            let output = oclprim(&words);
            assert!(output.status.success(), "{words:?}: {}", stderr(&output));
            stdout(&output).trim().to_owned()
        };
        assert_eq!(select(&small, &["--above", "1.5"]), "2 127");
        assert_eq!(select(&small, &["--above", "-0.5", "--below", "2.0001"]), "0 2");
        assert_eq!(select(&small, &["--below", "-1.5"]), "-128");
        assert_eq!(select(&small, &["--above", "1e99"]), "");
        assert_eq!(select(&small, &["--above", "-1e99"]), "-128 -1 0 2 127");
        assert_eq!(select(&small, &["--above", "-128.5", "--below", "128"]), "-128 -1 0 2 127");
        assert_eq!(select(&small, &["--above", "nan"]), "");
        assert_eq!(select(&bytes, &["--below", "256"]), "0 1 2 255");
        assert_eq!(select(&bytes, &["--above", "-1"]), "0 1 2 255");
        assert_eq!(select(&bytes, &["--above", "255"]), "");
        assert_eq!(select(&wide, &["--above", "18446744073709551614"]), "18446744073709551615");
        assert_eq!(select(&wide, &["--above", "18446744073709551613.9"]), "18446744073709551614 18446744073709551615");
        assert_eq!(select(&wide, &["--below", "inf", "--above", "9007199254740992"]).split(' ').count(), 2);
        assert_eq!(select(&floats, &["--above", "1e39"]), "inf");
        assert_eq!(select(&floats, &["--below", "-1e39"]), "-inf");
        assert_eq!(select(&floats, &["--below", "1e39"]), "-inf -3.4028235e38 0.1 3.4028235e38");
    }
    for (value, count) in
        [("2", "1"), ("2.0", "1"), ("20e-1", "1"), ("+2", "1"), ("2.5", "0"), ("256", "0"), ("-1", "0"), ("nan", "0")]
    {
        assert_eq!(cpu(&["count", &bytes, "--value", value]), count, "{value}");
    }
    assert_eq!(cpu(&["count", &floats, "--value", "0.1"]), "1");
    assert_eq!(cpu(&["count", &floats, "--value", "1e39"]), "0");
    assert_eq!(cpu(&["count", &floats, "--value", "inf"]), "1");
    for value in ["", "x", "1.5.2", "--5", "0x10", "1_000"] {
        let text = refuses(&["run", "count", &bytes, &format!("--value={value}")]);
        assert!(text.ends_with(&format!("--value: `{value}` is not a value of type u8\n")), "{text}");
    }
}

#[test]
fn values_beyond_a_type_are_refused_with_its_limits() {
    for (ty, start, why) in [
        ("f32", "1e39", "`1e39` is not a value of type f32, whose largest is 3.4028235e38"),
        ("f32", "-1e39", "`-1e39` is not a value of type f32, whose largest is 3.4028235e38"),
        ("f16", "65520", "`65520` is not a value of type f16, whose largest is 65500"),
        ("f64", "1e309", "`1e309` is not a value of type f64, whose largest is 1.7976931348623157e308"),
        ("u8", "256", "`256` is not a value of type u8, which has 0 to 255"),
        ("i8", "-129", "`-129` is not a value of type i8, which has -128 to 127"),
        ("u8", "1.5", "`1.5` is not a value of type u8"),
        ("i64", "inf", "`inf` is not a value of type i64, which has -9223372036854775808 to 9223372036854775807"),
        ("i64", "nan", "`nan` is not a value of type i64"),
    ] {
        let text = refuses(&["run", "iota", "2", "--type", ty, "--start", start]);
        assert_eq!(text, format!("error: --start: {why}\n"));
    }
    assert_eq!(cpu(&["iota", "2", "--type", "u8", "--start", "1e2", "--step", "2.0"]), "100 102");
    assert_eq!(cpu(&["iota", "2", "--type", "f32", "--start", "-inf"]), "-inf -inf");
    let text = refuses(&["run", "random", "3", "--type", "u8", "--range", "0", "256"]);
    assert!(text.contains("--range: `256` is not a value of type u8, which has 0 to 255"), "{text}");
    assert!(refuses(&["run", "random", "3", "--type", "f32", "--range", "-1e39", "0"]).contains("largest is"));
}

#[test]
fn ranges_beyond_an_integer_type_are_counted() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let pixels = folder.save("pixels.npy", &[2, 3], &[0u8, 255, 128, 127, 255, 1]);
    for device in devices() {
        let run = |words: &[&str]| {
            succeeds(&[&["run", "histogram", &pixels, "--verify"], words, &device[..]].concat()).trim().to_owned()
        };
        assert_eq!(run(&["--range", "0", "256", "--bins", "2"]), "3 3");
        assert_eq!(run(&["--range", "0", "256", "--bins", "2", "--channels"]), "2 0\n0 2\n1 1");
        assert_eq!(run(&["--range", "-256", "512", "--bins", "3"]), "0 6 0");
        assert_eq!(run(&["--range", "0", "256", "--bins", "2", "--weights", &pixels]), "128 638");
        run(&["--range", "0", "256", "--bins", "256", "-o", name]);
        let (_, counts) = load::<u64>(&output);
        assert_eq!((counts.len(), counts[0], counts[255], counts.iter().sum::<u64>()), (256, 1, 2, 6));
    }
    assert_eq!(cpu(&["histogram", &pixels, "--range", "-0.5", "255.5", "--bins", "2"]), "3 3");
    // NumPy's default integers have 64 bits. Samples are counted in another type if it represents each of them exactly.
    let ten: Vec<i64> = (0..10).collect();
    let ten = folder.save("ten.npy", &[10], &ten);
    assert_eq!(cpu(&["histogram", &ten, "--range", "0.5", "9.5", "--bins", "3"]), "3 3 3");
    assert_eq!(cpu(&["histogram", &ten, "--range", "-1e19", "1e19", "--bins", "2"]), "0 10");
    let unsigned: Vec<u64> = (0..10).collect();
    let unsigned = folder.save("unsigned.npy", &[10], &unsigned);
    assert_eq!(cpu(&["histogram", &unsigned, "--range", "-1", "10", "--bins", "11"]), "0 1 1 1 1 1 1 1 1 1 1");
    assert_eq!(cpu(&["histogram", &unsigned, "--range", "-0.5", "9.5", "--bins", "10"]), "1 1 1 1 1 1 1 1 1 1");
    let wide = folder.save("wide.npy", &[2], &[u64::MAX, 0]);
    let text = refuses(&["run", "histogram", &wide, "--range", "0", "18446744073709551616"]);
    let lacks = "u64 cannot represent 0 to 18446744073709551616, and f64 cannot represent every sample";
    assert!(text.contains(lacks), "{text}");
    assert!(refuses(&["run", "histogram", &pixels, "--range", "0", "x"]).contains("`x` is not a value of type u8"));
}

#[test]
fn edges_and_needles_of_another_type_are_converted_exactly_or_refused() {
    let folder = Folder::new();
    // `tenths` has the values of numpy.linspace(0, 1, 11).
    let tenths: Vec<f64> = (0..=10).map(|i| f64::from(i) * 0.1).collect();
    let tenths = folder.save("tenths.npy", &[11], &tenths);
    let whole = folder.save("whole.npy", &[3], &[0.0f64, 2.0, 4.0]);
    let halves = folder.save("halves.npy", &[3], &[0.0f64, 0.5, 1.0]);
    let integers = folder.save("integers.npy", &[3], &[0i64, 1, 300]);
    let samples = folder.save("samples.npy", &[4], &[0.0f32, 0.1, 0.55, 1.0]);
    let halved = folder.save("halved.npy", &[2], &[0.25f32, 0.75].map(f16::from_f32));
    let labels = folder.save("labels.npy", &[4], &[0u8, 1, 2, 4]);
    let long = folder.save("long.npy", &[2], &[1i64, (1 << 53) + 1]);
    let histogram = |file: &str, edges: &str| cpu_and_notice(&["histogram", file, "--edges", edges]).0;
    // 0.1 as f32 is larger than 0.1 as f64; both are compared exactly.
    assert_eq!(histogram(&samples, &tenths), "1 1 0 0 0 1 0 0 0 1");
    assert_eq!(histogram(&samples, &halves), "2 2");
    assert_eq!(histogram(&halved, &halves), "1 1");
    assert_eq!(histogram(&labels, &whole), "2 2");
    assert_eq!(histogram(&labels, &halves), "1 1");
    assert_eq!(histogram(&labels, &integers), "1 3");
    assert_eq!(histogram(&long, &whole), "1 0");
    // Converting both arrays to f64 would change this sample.
    let also = ", and in the other array element 1 is 9007199254740993, which no f64 equals";
    let text = refuses(&["run", "histogram", &long, "--edges", &halves]);
    assert!(text.ends_with(&format!("halves.npy: element 1 is 0.5, which no i64 equals{also}\n")), "{text}");

    let sorted = folder.save("sorted.npy", &[3], &[1u8, 2, 3]);
    let needles = folder.save("needles.npy", &[4], &[-1.0f64, 1.5, 2.0, 1e300]);
    assert_eq!(cpu(&["search", &sorted, "--needles", &needles]), "0 1 1 3");
    assert_eq!(cpu(&["search", &samples, "--needles", &labels]), "0 3 4 4");
    let text = refuses(&["run", "search", &long, "--needles", &needles]);
    assert!(text.ends_with(&format!("needles.npy: element 1 is 1.5, which no i64 equals{also}\n")), "{text}");
    assert_eq!(cpu(&["merge", &sorted, "--with", &whole]), "0 1 2 2 3 4");
    let text = refuses(&["run", "merge", &sorted, "--with", &halves]);
    assert!(text.ends_with("halves.npy: element 1 is 0.5, which no u8 equals\n"), "{text}");
    let three = folder.save("three.npy", &[3], &[2.0f32, 0.0, 1.0]);
    assert_eq!(cpu(&["reduce", &sorted, "--dot", &three]), "5");
    let words = folder.save("words.npy", &[3], &[[b'a'; 4]; 3].map(|_| num_complex::Complex::new(1.0f32, 0.0)));
    assert!(refuses(&["run", "search", &sorted, "--needles", &words]).contains("complex numbers"));

    // Indices may have any integer type.
    for indices in [folder.save("p1.npy", &[2], &[2u8, 0]), folder.save("p2.npy", &[2], &[2i16, 0])] {
        let output = folder.path("out.npy");
        cpu(&["gather", &sorted, "--indices", &indices, "-o", output.to_str().expect("UTF-8")]);
        assert_eq!(load::<u8>(&output).1, [3, 1]);
    }
    assert!(refuses(&["run", "gather", &sorted, "--indices", &whole]).contains("expected integers, not <f8"));
}

#[test]
fn equal_samples_have_the_range_that_numpy_gives() {
    let folder = Folder::new();
    let same = folder.save("same.npy", &[3], &[2.0f32; 3]);
    let doubles = folder.save("doubles.npy", &[1], &[1e10f64]);
    let halves = folder.save("halves.npy", &[2], &[f16::ONE; 2]);
    let nothing = folder.save::<f64>("nothing.npy", &[0], &[]);
    for device in devices() {
        let run = |file: &str, bins: &str| {
            succeeds(&[&["run", "histogram", file, "--bins", bins, "--verify"], &device[..]].concat()).trim().to_owned()
        };
        assert_eq!(run(&same, "4"), "0 0 3 0");
        assert_eq!(run(&halves, "2"), "0 2");
    }
    assert_eq!(cpu(&["histogram", &doubles, "--bins", "3"]), "0 1 0");
    assert_eq!(cpu(&["histogram", &nothing, "--bins", "2"]), "0 0");
    let far = folder.save("far.npy", &[1], &[1e10f32]);
    assert!(refuses(&["run", "histogram", &far]).contains("give no range: give one with --range"));
    let nan = folder.save("nan.npy", &[2], &[f32::NAN, 1.0]);
    assert!(refuses(&["run", "histogram", &nan]).contains("give one with --range"));
}

#[test]
fn numbers_are_printed_in_few_digits() {
    let folder = Folder::new();
    let large = folder.save("large.npy", &[2], &[1e300f64, -1e-300]);
    assert_eq!(cpu(&["sort", &large]), "-1e-300 1e300");
    assert_eq!(cpu(&["reduce", &large]), "1e300");
    assert_eq!(cpu(&["reduce", &large, "--op", "max"]), "1e300");
    assert_eq!(cpu(&["reduce", &large, "--op", "arg-max"]), "1e300 at index 0");
    assert_eq!(cpu(&["quantile", &large, "--q", "1"]), "1e300");
    assert_eq!(cpu(&["scan", &large]), "1e300 1e300");
    assert!(cpu(&["statistics", &large]).contains("sum       1e300\n"));
    assert_eq!(cpu(&["histogram", &large, "--bins", "1", "--weights", &large]), "1e300");
    let halves = folder.save("halves.npy", &[2], &[0.1f32, 2.5].map(f16::from_f32));
    assert_eq!(cpu(&["sort", &halves]), "0.1 2.5");
    let complex = folder.save("complex.npy", &[1], &[num_complex::Complex::new(1e300f64, -1e-300)]);
    assert_eq!(cpu(&["reduce", &complex]), "1e300-1e-300i");
    let floats = folder.save("floats.npy", &[1], &[f32::MAX]);
    assert!(refuses(&["run", "histogram", &floats]).contains("samples from 3.4028235e38 to 3.4028235e38"));
}

#[test]
fn options_take_negative_values() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[3], &[1.0f32, 2.0, 3.0]);
    for q in ["-0.5", "-0.5,0.5", "0.5,-1e-3"] {
        let text = refuses(&["run", "quantile", &input, "--q", q]);
        assert!(text.contains("from 0 to 1"), "{q}: {text}");
    }
    for words in [
        &["run", "histogram", &input, "--range", "-inf", "1"][..],
        &["run", "random", "2", "--range", "-inf", "1"],
        &["run", "iota", "2", "--start", "-1e999"],
    ] {
        let error = refuses(words);
        assert!(!error.contains("tip:"), "{error}");
    }
    for words in [
        ["run", "topk", &input, "--k", "-1"],
        ["run", "histogram", &input, "--bins", "-1"],
        ["run", "scatter", &input, "--len", "-1"],
    ] {
        let output = program(&words).output().expect("the program starts");
        let text = stderr(&output);
        assert!(output.status.code() == Some(2) && text.contains("'-1'") && !text.contains("-- -1"), "{text}");
    }
}

#[test]
fn zero_keys_of_empty_rows_give_empty_rows() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let empty = folder.save::<f32>("empty.npy", &[3, 0], &[]);
    for device in devices() {
        succeeds(&[&["run", "topk", &empty, "--rows", "--k", "0", "-o", name, "--verify"], &device[..]].concat());
        assert_eq!(load::<f32>(&output), (vec![3, 0], vec![]));
        succeeds(&[&["run", "topk", &empty, "--rows", "--k", "0", "--indices", "-o", name], &device[..]].concat());
        assert_eq!(load::<i64>(&output), (vec![3, 0], vec![]));
    }
    assert!(refuses(&["run", "topk", &empty, "--rows", "--k", "1"]).starts_with("error: "));
    assert_eq!(cpu_and_notice(&["topk", &empty, "--k", "0"]).1, "the result has 0 elements\n");
}
