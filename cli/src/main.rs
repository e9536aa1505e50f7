//! The program `oclprim`.

fn main() -> std::process::ExitCode {
    oclprim_cli::main()
}
