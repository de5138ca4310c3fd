//! Compiles LINPACK's C source with the flags of native/module/linpack/Kbuild.
//! The kernel module has the same source and so the same instructions.

fn main() {
    let folder = "../module/linpack";
    cc::Build::new()
        .file(format!("{folder}/solve.c"))
        .opt_level(3)
        .debug(false)
        .flag("-fno-strict-aliasing")
        .compile("linpack_solve");
    println!("cargo:rerun-if-changed={folder}/solve.c");
    println!("cargo:rerun-if-changed={folder}/solve.h");
}
