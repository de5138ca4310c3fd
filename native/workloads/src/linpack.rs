//! The classic LINPACK benchmark on a 200 × 200 system in double precision.
//! It is factored (dgefa) and solved (dgesl) repeatedly, in rows of doubling repetitions.
//!
//! Algorithms: J. Dongarra, J. Bunch, C. Moler, G. W. Stewart, *LINPACK Users' Guide*, SIAM 1979 (Gaussian elimination
//! with partial pivoting by columns); matrix, operation count and table as in the benchmark program of J. Dongarra,
//! "Performance of various computers using standard linear equations software". Leading dimension 201.
//!
//! Output, to be read by programs:
//! ```text
//! LINPACK double precision, 200 x 200
//!
//!     Reps Time(s)  DGEFA   DGESL OVERHEAD     KFLOPS
//!        1   0.00  92.11%   3.08%   4.81%  2514003.111
//! Residual 1.02140518e-13 normalised 2.110000
//! ```
//! A row is `%8d %6.2f %6.2f%% %6.2f%% %6.2f%%  %9.3f`: repetitions, CPU time of this process (user and system, as the
//! classic has it), shares of dgefa, dgesl and the rest (making the matrix anew), and the speed
//! n (2n³/3 + 2n²) / (1000 (time − overhead)) for n repetitions. A row whose time without overhead is 0 (the clock was
//! too coarse for it) is replaced by `%8d too short to measure`.
//!
//! The work itself is done in Rust, in C, or by the same C in the kernel with interrupts off (a module); there the times
//! are by the kernel's clock. With `--interrupts` a last line says how many interrupts the CPU had on which it began
//! (`Interrupts 52 on CPU 1`), from the first row to the last, of the module from its first repetition to its last.

use std::hint::black_box;
use std::io::Write;

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::request::{Fault, number};

mod interrupts;
mod module;
mod solve;
mod twin;

use interrupts::Count;
use solve::{LEADING, N};

/// Floating-point operations of one repetition.
const OPERATIONS: f64 = 2.0 * (N * N * N) as f64 / 3.0 + 2.0 * (N * N) as f64;
const MOST_REPETITIONS: u64 = 1 << 30;
/// The HPL benchmark's bound for the normalised residual.
/// A right solution has one of the order of 1.
const LARGEST_RESIDUAL: f64 = 16.0;

/// Which code does the work.
#[derive(Clone, Copy, Default)]
enum Code {
    #[default]
    Rust,
    C,
    Kernel,
}

impl Code {
    fn of(name: &str) -> Result<Code, lexopt::Error> {
        match name {
            "rust" => Ok(Code::Rust),
            "c" => Ok(Code::C),
            "kernel" => Ok(Code::Kernel),
            _ => Err(format!("--code is rust, c or kernel, not {name:?}").into()),
        }
    }
}

/// Which rows are measured, and how.
struct Request {
    first: u64,
    longest: u64,
    code: Code,
    interrupts: bool,
}

pub fn run(arguments: lexopt::Parser) -> Result<(), Fault> {
    let request = parse(arguments)?;
    let mut out = std::io::stdout();
    writeln!(out, "LINPACK double precision, {N} x {N}\n")?;
    writeln!(out, "    Reps Time(s)  DGEFA   DGESL OVERHEAD     KFLOPS")?;
    let mut system = System::new(request.code);
    let before = if request.interrupts { Some(Count::here().map_err(Fault::Run)?) } else { None };
    let mut in_kernel = InKernel::default();
    let mut repetitions = request.first;
    while repetitions <= request.longest {
        let measured = match request.code {
            Code::Kernel => in_kernel.measure(&mut system, repetitions).map_err(Fault::Run)?,
            _ => system.measure(repetitions),
        };
        writeln!(out, "{}", measured.row())?;
        out.flush()?;
        repetitions *= 2;
    }
    let interrupts = match (&before, request.code) {
        (Some(_), Code::Kernel) => Some((in_kernel.interrupts, in_kernel.cpu)),
        (Some(count), _) => Some((count.since().map_err(Fault::Run)?, count.cpu)),
        (None, _) => None,
    };
    let residual = system.residual();
    writeln!(out, "Residual {} normalised {:.6}", exponential(residual.absolute), residual.normalised)?;
    if let Some((number, cpu)) = interrupts {
        writeln!(out, "Interrupts {number} on CPU {cpu}")?;
    }
    if residual.normalised < LARGEST_RESIDUAL {
        return Ok(());
    }
    Err(Fault::Run(format!("the solution is wrong: normalised residual not below {LARGEST_RESIDUAL}")))
}

fn parse(mut arguments: lexopt::Parser) -> Result<Request, lexopt::Error> {
    let (mut first, mut longest, mut only) = (None, None, None);
    let (mut code, mut interrupts) = (Code::default(), false);
    while let Some(argument) = arguments.next()? {
        let (place, name) = match argument {
            Long("first") => (&mut first, "first"),
            Long("reps-from") => (&mut first, "reps-from"),
            Long("longest") => (&mut longest, "longest"),
            Long("reps-to") => (&mut longest, "reps-to"),
            Long("repetitions") => (&mut only, "repetitions"),
            Long("code") => {
                code = Code::of(&arguments.value()?.string()?)?;
                continue;
            }
            Long("interrupts") => {
                interrupts = true;
                continue;
            }
            other => return Err(other.unexpected()),
        };
        *place = Some(number(&mut arguments, name, 1, MOST_REPETITIONS)?);
    }
    let (first, longest) = rows(only, first, longest)?;
    Ok(Request { first, longest, code, interrupts })
}

fn rows(only: Option<u64>, first: Option<u64>, longest: Option<u64>) -> Result<(u64, u64), lexopt::Error> {
    match (only, first, longest) {
        (Some(only), None, None) => Ok((only, only)),
        (Some(_), _, _) => Err("--repetitions is one row: it goes with no --first and no --longest".into()),
        (None, first, longest) => {
            let first = first.unwrap_or(1);
            let longest = longest.unwrap_or(first.max(128));
            if longest < first {
                return Err(format!("--longest {longest} is less than --first {first}").into());
            }
            Ok((first, longest))
        }
    }
}

/// One row of the table, in seconds of CPU time.
struct Measured {
    repetitions: u64,
    total: f64,
    factoring: f64,
    solving: f64,
}

impl Measured {
    fn row(&self) -> String {
        let net = self.factoring + self.solving;
        if net <= 0.0 || self.total <= 0.0 {
            return format!("{:>8} too short to measure", self.repetitions);
        }
        let percent = |part: f64| 100.0 * part / self.total;
        let kflops = self.repetitions as f64 * OPERATIONS / (1000.0 * net);
        format!(
            "{:>8} {:>6.2} {:>6.2}% {:>6.2}% {:>6.2}%  {:>9.3}",
            self.repetitions,
            self.total,
            percent(self.factoring),
            percent(self.solving),
            percent((self.total - net).max(0.0)),
            kflops
        )
    }
}

/// The largest element of A x − b, and the same in units of N |A| |x| ε.
struct Residual {
    absolute: f64,
    normalised: f64,
}

/// What the module did in all rows so far.
#[derive(Default)]
struct InKernel {
    interrupts: u64,
    cpu: usize,
}

impl InKernel {
    /// A row by the module; `system` gets its solution.
    fn measure(&mut self, system: &mut System, repetitions: u64) -> Result<Measured, String> {
        let report = module::repeat(repetitions)?;
        self.interrupts += report.interrupts;
        self.cpu = report.cpu;
        system.b = report.solution;
        let [total, factoring, solving] =
            [report.total_ns, report.factoring_ns, report.solving_ns].map(|ns| ns as f64 * 1e-9);
        Ok(Measured { repetitions, total, factoring, solving })
    }
}

/// A x = b; after solving, `a` holds the factors and `b` the solution.
struct System {
    a: Vec<f64>,
    b: [f64; N],
    pivots: [usize; N],
    pivots_in_c: [u32; N],
    code: Code,
}

impl System {
    fn new(code: Code) -> System {
        let mut system = System { a: vec![0.0; LEADING * N], b: [0.0; N], pivots: [0; N], pivots_in_c: [0; N], code };
        system.generate();
        system
    }

    /// The classic's matrix by columns, from −2 to 2.
    /// Returns the largest element. A linear congruential generator makes it; b is the sum of the columns, so that the
    /// solution is 1 everywhere.
    fn generate(&mut self) -> f64 {
        let mut state = 1325_u32;
        let mut largest: f64 = 0.0;
        self.b.fill(0.0);
        for column in self.a.chunks_exact_mut(LEADING) {
            for (element, sum) in column.iter_mut().zip(&mut self.b) {
                state = 3125 * state % 65536;
                *element = (f64::from(state) - 32768.0) / 16384.0;
                *sum += *element;
                largest = largest.max(*element);
            }
        }
        largest
    }

    fn measure(&mut self, repetitions: u64) -> Measured {
        let begin = cpu_seconds();
        let (mut factoring, mut solving) = (0.0, 0.0);
        for _ in 0..repetitions {
            self.make_anew();
            let generated = cpu_seconds();
            self.factor();
            let factored = cpu_seconds();
            self.solve();
            factoring += factored - generated;
            solving += cpu_seconds() - factored;
        }
        Measured { repetitions, total: cpu_seconds() - begin, factoring, solving }
    }

    fn make_anew(&mut self) {
        match self.code {
            Code::C => twin::generate(black_box(&mut self.a), &mut self.b),
            _ => _ = self.generate(),
        }
    }

    fn factor(&mut self) {
        match self.code {
            Code::C => twin::dgefa(black_box(&mut self.a), &mut self.pivots_in_c),
            _ => solve::dgefa(black_box(&mut self.a), LEADING, &mut self.pivots),
        }
    }

    fn solve(&mut self) {
        match self.code {
            Code::C => twin::dgesl(black_box(&self.a), &self.pivots_in_c, &mut self.b),
            _ => solve::dgesl(black_box(&self.a), LEADING, &self.pivots, &mut self.b),
        }
        black_box(&mut self.b);
    }

    /// How well the last solution solves the system.
    fn residual(&mut self) -> Residual {
        let solution = self.b;
        let largest_element = self.generate();
        let mut rest = self.b.map(|sum| -sum);
        for (column, x) in self.a.chunks_exact(LEADING).zip(solution) {
            for (sum, element) in rest.iter_mut().zip(column) {
                *sum += element * x;
            }
        }
        let largest = |values: [f64; N]| values.iter().fold(0.0, |most: f64, value| worse(most, value.abs()));
        let absolute = largest(rest);
        let normalised = absolute / (N as f64 * largest_element * largest(solution) * f64::EPSILON);
        Residual { absolute, normalised }
    }
}

/// The larger one; not a number is the worst of all.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    a.max(b)
}

/// C's `%.8e`: at least two digits of exponent, with a sign.
fn exponential(value: f64) -> String {
    let text = format!("{value:.8e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_is_one_everywhere() {
        let mut system = System::new(Code::Rust);
        let measured = system.measure(2);
        assert!(system.b.iter().all(|x| (x - 1.0).abs() < 1e-10));
        assert!(measured.total >= measured.factoring + measured.solving);
        let residual = system.residual();
        assert!(residual.normalised > 0.0 && residual.normalised < LARGEST_RESIDUAL);
    }

    #[test]
    fn the_code_in_c_does_the_same_to_the_bit() {
        let (mut rust, mut c) = (System::new(Code::Rust), System::new(Code::C));
        for system in [&mut rust, &mut c] {
            system.measure(1);
        }
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert!(bits(&rust.a) == bits(&c.a));
        assert!(bits(&rust.b) == bits(&c.b));
        assert_eq!(rust.pivots, c.pivots_in_c.map(|pivot| pivot as usize));
        assert_eq!(rust.residual().normalised, c.residual().normalised);
    }

    #[test]
    fn a_wrong_solution_has_a_large_residual() {
        let mut system = System::new(Code::Rust);
        system.measure(1);
        system.b[17] += 1e-9;
        assert!(system.residual().normalised > LARGEST_RESIDUAL);
        system.measure(1);
        system.b[0] = f64::NAN;
        assert!(system.residual().normalised.is_nan());
    }

    #[test]
    fn rows_look_like_the_classic() {
        let measured = Measured { repetitions: 1, total: 0.5, factoring: 0.375, solving: 0.0625 };
        assert_eq!(measured.row(), "       1   0.50  75.00%  12.50%  12.50%  12373.333");
        let nothing = Measured { repetitions: 1, total: 0.0, factoring: 0.0, solving: 0.0 };
        assert_eq!(nothing.row(), "       1 too short to measure");
    }

    #[test]
    fn exponents_look_like_c() {
        assert_eq!(exponential(1.5e-13), "1.50000000e-13");
        assert_eq!(exponential(0.0), "0.00000000e+00");
        assert_eq!(exponential(2.5e3), "2.50000000e+03");
    }
}
