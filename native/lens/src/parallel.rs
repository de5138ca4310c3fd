//! A clock of its own for each CPU of a guest, so that its CPUs run at once.
//!
//! Under the virtual clock QEMU lets one CPU after the other carry out instructions, and each instruction moves the one
//! clock on: what a CPU does takes time from all others. Here each has a local time instead. A CPU's turn goes on until
//! its local time has come to the end of the quantum, or to the next timer; when all that run have come there, the
//! guest's time follows. A CPU that is woken begins at the time of its waker, and one that waits in a loop (`pause`) lets
//! the rest of the quantum pass. No CPU sees a time before one that another has seen.
//!
//! Where a modelled machine keeps the time (`follow`), a CPU's local time is what its instructions take there, and what
//! they wait for. Each wait takes from what its turn may still carry out. A line that another CPU has taken ends the
//! turn, so that CPUs that share one take it from each other as often as they access it. The last block of a turn may
//! wait for longer than was left: then that CPU has no turn until the others have come there. The same holds for a CPU
//! that stands still for a while (`pauses`): what interrupts it meanwhile waits for it.
//!
//! QEMU asks for the time through pointers in a table of its accelerator, which are replaced here; it is found by the
//! functions that it names. How far a CPU may go, QEMU takes from the time until the next timer: it is told the time that
//! leaves as much. Between turns `bias + instructions` is kept such that QEMU's own reckoning gives the guest's time, so
//! that an idle guest jumps to its next timer, and snapshots hold it, as without all this. Source:
//! accel/tcg/tcg-accel-ops-rr.c, -icount.c, icount-common.c, include/system/accel-ops.h of QEMU 10.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::Relaxed};

use crate::exports::required;
use crate::interface::{self, interface};
use crate::machine::Times;
use crate::model::Stall;
use crate::pauses::{self, Pauses};

type State = *mut c_void;
type Time = extern "C" fn() -> i64;
type Interrupt = unsafe extern "C" fn(State, c_int);
type Idle = extern "C" fn(State) -> bool;
type OfState = unsafe extern "C" fn(State);

const VIRTUAL_CLOCK: c_int = 1;
const ALL_TIMERS: c_int = -1;
/// So many words of the table are looked through; it has 36.
const WORDS: usize = 36;
const MOST_BYTES: usize = 1 << 16;
const NEVER: i64 = -1;
const FS_PER_NS: i64 = 1_000_000;
/// A turn is no longer.
const LONGEST_TURN_NS: i64 = 1_000_000_000;
/// No more CPUs have been tried.
const MOST_CPUS: usize = 16;
/// Spares a CPU that is there already a turn of none, for which QEMU would run its timers.
const LEAST_INSTRUCTIONS: i64 = 1;
/// A pause takes 140 cycles on Intel CPUs since Skylake, and about 10 before.
const PAUSE_INSTRUCTIONS: i64 = 32;
const SHORT_PAUSES: i64 = 1;
/// `pause`, and `mwait`, which QEMU carries out like it where there are several CPUs.
const WAITING: [&[u8]; 2] = [&[0xf3, 0x90], &[0x0f, 0x01, 0xc9]];

static PARALLEL: AtomicPtr<Parallel> = AtomicPtr::new(ptr::null_mut());

#[derive(Clone, Copy)]
struct Functions {
    time_ns: unsafe extern "C" fn() -> i64,
    instructions: unsafe extern "C" fn() -> i64,
    deadline_ns: unsafe extern "C" fn(c_int, c_int) -> i64,
    update: OfState,
    is_idle: unsafe extern "C" fn(State) -> bool,
    is_locked: unsafe extern "C" fn() -> bool,
    table: unsafe extern "C" fn() -> *const AtomicPtr<c_void>,
    kick: OfState,
    interrupt: Interrupt,
    find: unsafe extern "C" fn(c_int) -> State,
}

/// Where a CPU's structure says how many instructions it may still carry out: `whole` of them, of which `later` and
/// `now` are the parts that are left. Source: include/hw/core/cpu.h, `icount_budget`, `icount_extra`, `icount_decr`.
#[derive(Clone, Copy)]
struct Budget {
    whole: usize,
    later: usize,
    now: usize,
}

/// How fast CPUs are: by a modelled machine.
#[derive(Clone, Copy)]
struct Pace {
    instruction_fs: i64,
    pause_ns: i64,
}

impl Pace {
    /// How many instructions fit in so much time.
    fn fitting(self, ns: i64, passed_fs: i64) -> i64 {
        let fs = ns.min(LONGEST_TURN_NS) * FS_PER_NS - passed_fs;
        (fs + self.instruction_fs - 1).div_euclid(self.instruction_fs)
    }
}

struct Cpu {
    state: State,
    local: Cell<i64>,
    /// By how many fs it is further than that.
    rest_fs: Cell<i64>,
    /// In which quantum it has paused last, and how often.
    pauses: Cell<(i64, i64)>,
    /// Whether its turn ended with a line that another CPU had taken: the next one begins when the others have come there.
    shares: Cell<bool>,
    /// When it stands still.
    still: Pauses,
    /// When it goes on after its last pause.
    goes_on: Cell<i64>,
    /// How long it is to stand still after this turn.
    owes_ns: Cell<i64>,
}

struct Parallel {
    functions: Functions,
    quantum: Cell<i64>,
    shift: i64,
    /// None: instructions take as long as QEMU says.
    pace: Cell<Option<Pace>>,
    budget: OnceLock<Budget>,
    /// Have a CPU leave what it carries out.
    exit: OfState,
    /// Of each CPU, until it has its structure; they count from `began` on, which is `NEVER` before.
    pauses: Cell<Vec<Pauses>>,
    began: Cell<i64>,
    /// What the CPU whose turn it is has waited for since its local time was set, and how much of that was not yet taken
    /// from its turn.
    stalled_fs: Cell<i64>,
    owed_fs: Cell<i64>,
    /// QEMU's own: what is added to the time of the instructions, and how many there were, but for this turn's.
    bias: &'static AtomicI64,
    counted: &'static AtomicI64,
    /// Where in a CPU's structure it says whether it carries code out.
    runs_at: usize,
    current: OnceLock<&'static AtomicPtr<c_void>>,
    thread: Cell<libc::pthread_t>,
    cpus: OnceLock<Vec<Cpu>>,
    /// Whether CPUs have local times. If not, QEMU's own reckoning holds: before the first turn, and while the guest is
    /// stopped.
    is_on: AtomicBool,
    /// How many instructions had been carried out when the guest's time was set last.
    folded: AtomicI64,
    /// The guest's time that follows from so many instructions.
    followed: Cell<(i64, i64)>,
    /// Where the quantum ends.
    horizon: Cell<i64>,
    /// Whose turn it is, and how many instructions of it are in its local time already.
    turn: Cell<usize>,
    turn_counted: Cell<i64>,
    is_alone: Cell<bool>,
    has_paused: Cell<bool>,
    /// The last time that a CPU has seen.
    seen: Cell<i64>,
    is_asking: Cell<bool>,
    /// Whether the thread of the CPUs waits until one has work.
    rests: AtomicBool,
}

/// Have CPUs run at once, in quanta of so many ns of the guest's time, with those `pauses`, if any. The error says what
/// this QEMU lacks.
pub fn prepare(quantum_ns: u64, cpus: c_int, pauses: Vec<Pauses>) -> Result<(), String> {
    if !(1..=MOST_CPUS as c_int).contains(&cpus) {
        return Err(format!("{cpus} CPUs cannot run at once; 1 to {MOST_CPUS} can"));
    }
    let functions = Functions {
        time_ns: required(c"icount_get")?,
        instructions: required(c"icount_get_raw")?,
        deadline_ns: required(c"qemu_clock_deadline_ns_all")?,
        update: required(c"icount_update")?,
        is_idle: required(c"cpu_thread_is_idle")?,
        is_locked: required(c"bql_locked")?,
        table: required(c"cpus_get_accel")?,
        kick: required(c"rr_kick_vcpu_thread")?,
        interrupt: required(c"icount_handle_interrupt")?,
        find: required(c"qemu_get_cpu")?,
    };
    required::<*mut c_void>(c"current_cpu")?;
    let as_ns: unsafe extern "C" fn(i64) -> i64 = required(c"icount_to_ns")?;
    let on_change: unsafe extern "C" fn(extern "C" fn(*mut c_void, bool, c_int), *mut c_void) -> *mut c_void =
        required(c"qemu_add_vm_change_state_handler")?;
    // SAFETY: no other thread uses the clock yet.
    let counted = unsafe { word_of(functions.instructions, None)? };
    // SAFETY: as above.
    let bias = unsafe { word_of(functions.time_ns, Some(counted))? };
    // SAFETY: it only reckons.
    let shift = i64::from(unsafe { as_ns(1) }.trailing_zeros());
    let parallel = Box::new(Parallel {
        functions,
        quantum: Cell::new(quantum_ns as i64),
        shift,
        pace: Cell::new(None),
        budget: OnceLock::new(),
        exit: required(c"cpu_exit")?,
        pauses: Cell::new(pauses),
        began: Cell::new(NEVER),
        stalled_fs: Cell::new(0),
        owed_fs: Cell::new(0),
        bias,
        counted,
        runs_at: runs_at()?,
        current: OnceLock::new(),
        thread: Cell::new(0),
        cpus: OnceLock::new(),
        is_on: AtomicBool::new(false),
        folded: AtomicI64::new(0),
        followed: Cell::new((0, NEVER)),
        horizon: Cell::new(0),
        turn: Cell::new(0),
        turn_counted: Cell::new(0),
        is_alone: Cell::new(false),
        has_paused: Cell::new(false),
        seen: Cell::new(0),
        is_asking: Cell::new(false),
        rests: AtomicBool::new(false),
    });
    PARALLEL.store(Box::into_raw(parallel), Relaxed);
    // SAFETY: QEMU calls it on the thread that stops and starts the guest.
    unsafe { on_change(changed, ptr::null_mut()) };
    Ok(())
}

/// To be called before any CPU runs, where a modelled machine is to keep the time. The error says what this QEMU lacks.
pub fn prepare_stalls() -> Result<(), String> {
    let Some(parallel) = parallel() else {
        return Err("a machine keeps the time of CPUs with a clock of their own".to_owned());
    };
    // SAFETY: no other thread uses the clock yet.
    let budget = unsafe { Budget::find(&parallel.functions, parallel.counted)? };
    let _ = parallel.budget.set(budget);
    Ok(())
}

impl Budget {
    /// By what QEMU counts as carried out in an empty structure with a number in one place.
    ///
    /// # Safety
    /// Nothing else uses the clock.
    unsafe fn find(functions: &Functions, counted: &AtomicI64) -> Result<Budget, String> {
        // SAFETY: QEMU only counts in the structure, which is large enough, and nothing else does.
        unsafe {
            let mut empty = vec![0_u64; MOST_BYTES / 8];
            let state: *mut u8 = empty.as_mut_ptr().cast();
            let counts = |place: usize| {
                let kept = counted.load(Relaxed);
                state.add(place).cast::<u16>().write(1);
                (functions.update)(state.cast());
                let more = counted.swap(kept, Relaxed) - kept;
                if more != 0 {
                    state.write_bytes(0, MOST_BYTES);
                }
                state.add(place).cast::<u16>().write(0);
                more
            };
            let places = (0..MOST_BYTES).step_by(2);
            let found: Vec<(usize, i64)> =
                places.map(|place| (place, counts(place))).filter(|(_, more)| *more != 0).collect();
            let of = |count: i64| -> Vec<usize> {
                found.iter().filter(|(_, more)| *more == count).map(|(place, _)| *place).collect()
            };
            // One of those that make it less has more bits than the 16 of the other.
            let is_long = |place: &usize| found.contains(&(place + 2, -1 << 16));
            let (later, now): (Vec<usize>, Vec<usize>) = of(-1).into_iter().partition(is_long);
            match (&of(1)[..], &later[..], &now[..]) {
                ([whole], [later], [now]) if whole % 8 == 0 && later % 8 == 0 => {
                    Ok(Budget { whole: *whole, later: *later, now: *now })
                }
                _ => Err("this QEMU counts down otherwise".to_owned()),
            }
        }
    }

    /// Have a CPU that carries code out carry out so many less, or none after this block.
    ///
    /// # Safety
    /// `state` is a CPU's structure, whose turn it is, and the caller is its thread.
    unsafe fn take(self, state: State, instructions: i64) {
        // SAFETY: the places were found in such a structure, and only this thread writes there.
        unsafe {
            let state: *mut u8 = state.cast();
            let (whole, later) = (state.add(self.whole).cast::<i64>(), state.add(self.later).cast::<i64>());
            let now = state.add(self.now).cast::<u16>();
            let taken = instructions.min(*later + i64::from(*now));
            let of_later = taken.min(*later);
            *whole -= taken;
            *later -= of_later;
            *now -= (taken - of_later) as u16;
        }
    }
}

/// From now on the machine keeps the time.
pub fn follow(times: &Times) {
    if let Some(parallel) = parallel() {
        parallel.follow(times);
    }
}

/// From the next µs on CPUs stand still at their times.
pub fn begin_pauses() {
    if let (Some(parallel), Some(now)) = (parallel(), now_ns()) {
        parallel.begin_pauses(now as i64);
    }
}

/// The time from which pauses count, if the workload has started in a block that ends at that time: the next µs. What a
/// block has carried out is known at its end only, and where that is depends on how deep the lens looks.
pub fn begin_of_pauses(time: i64) -> i64 {
    (time / 1000 + 1) * 1000
}

/// The time at which that many instructions of the block which calls this are still to be carried out.
pub fn before_end_ns(instructions: u64) -> Option<u64> {
    let parallel = parallel()?;
    let left = match parallel.pace.get() {
        None => instructions << parallel.shift,
        Some(pace) => instructions * pace.instruction_fs as u64 / FS_PER_NS as u64,
    };
    Some(now_ns()?.saturating_sub(left))
}

/// The CPU whose turn it is stands still for so long after its block.
pub fn pause_after(length: i64) {
    if let Some(parallel) = parallel() {
        parallel.pause_after(length);
    }
}

/// The CPU whose turn it is waits.
pub fn stall(stall: Stall) {
    if let Some(parallel) = parallel() {
        parallel.stall(stall);
    }
}

/// Where QEMU's table of its accelerator has what is to be replaced.
struct Places {
    times: [&'static AtomicPtr<c_void>; 2],
    interrupt: &'static AtomicPtr<c_void>,
    idle: &'static AtomicPtr<c_void>,
}

impl Places {
    fn find(functions: &Functions) -> Result<Places, String> {
        // SAFETY: the table is a class of QEMU's object model, which lives for ever.
        let table = unsafe { (functions.table)() };
        // SAFETY: as above; it has at least so many words.
        let words: Vec<&AtomicPtr<c_void>> = (0..WORDS).map(|place| unsafe { &*table.add(place) }).collect();
        let holding = |address: *mut c_void| -> Vec<usize> {
            (0..WORDS).filter(|place| words[*place].load(Relaxed) == address).collect()
        };
        let times = holding(functions.time_ns as *mut c_void);
        let interrupts = holding(functions.interrupt as *mut c_void);
        let kicks = holding(functions.kick as *mut c_void);
        let ([first, second], [interrupt], [kick]) = (&times[..], &interrupts[..], &kicks[..]) else {
            return Err("this QEMU reads its clock otherwise".to_owned());
        };
        // The table has its entry `cpu_thread_is_idle` after `kick_vcpu_thread`; it is empty.
        let idle = words[kick + 1];
        if !idle.load(Relaxed).is_null() {
            return Err("this QEMU tells idle CPUs otherwise".to_owned());
        }
        Ok(Places { times: [words[*first], words[*second]], interrupt: words[*interrupt], idle })
    }

    fn fill(&self) {
        self.idle.store(idle as Idle as *mut c_void, Relaxed);
        self.interrupt.store(interrupt as Interrupt as *mut c_void, Relaxed);
        for place in self.times {
            place.store(time as Time as *mut c_void, Relaxed);
        }
    }
}

/// The word of QEMU's `timers_state`, other than `known`, on which what `reading` returns depends one to one.
///
/// # Safety
/// Nothing else uses the clock.
unsafe fn word_of(
    reading: unsafe extern "C" fn() -> i64,
    known: Option<&AtomicI64>,
) -> Result<&'static AtomicI64, String> {
    // SAFETY: QEMU's own variable, of more than 16 words, which lives for ever; nothing else uses it now.
    unsafe {
        const STEP: i64 = 1 << 40;
        let state: *const AtomicI64 = required(c"timers_state")?;
        let words = (0..16).map(|place| &*state.add(place));
        let mut found = words.filter(|word| known.is_none_or(|known| !ptr::eq(*word, known))).filter(|word| {
            let before = reading();
            let kept = word.fetch_add(STEP, Relaxed);
            let after = reading();
            word.store(kept, Relaxed);
            after - before == STEP
        });
        match (found.next(), found.next()) {
            (Some(word), None) => Ok(word),
            _ => Err("this QEMU keeps its clock otherwise".to_owned()),
        }
    }
}

/// Where a CPU's structure says that it carries code out: what QEMU's functions for that change in an empty one.
fn runs_at() -> Result<usize, String> {
    let (start, end): (OfState, OfState) = (required(c"cpu_exec_start")?, required(c"cpu_exec_end")?);
    let mut empty = vec![0_u64; MOST_BYTES / 8];
    let state: *mut u8 = empty.as_mut_ptr().cast();
    // SAFETY: of `MOST_BYTES`.
    let byte = |place: usize| unsafe { state.add(place).read() };
    // SAFETY: they use nothing else of it while no other thread waits for CPUs to stop.
    unsafe { start(state.cast()) };
    let set: Vec<usize> = (0..MOST_BYTES).filter(|place| byte(*place) != 0).collect();
    // SAFETY: as above.
    unsafe { end(state.cast()) };
    let is_clear = (0..MOST_BYTES).all(|place| byte(place) == 0);
    match set[..] {
        [place] if is_clear => Ok(place),
        _ => Err("this QEMU marks CPUs that run otherwise".to_owned()),
    }
}

/// To be called for each block that is translated, by the thread of the CPUs.
pub fn watch(block: &interface::Block) {
    let Some(parallel) = parallel() else { return };
    if parallel.cpus.get().is_none() {
        if let Err(reason) = parallel.begin() {
            eprintln!("lens: {reason}");
            // SAFETY: it ends this process without looking back.
            unsafe { libc::_exit(1) }
        }
    }
    let Some(last) = block.instructions().last() else { return };
    if WAITING.contains(&last.bytes().as_slice()) {
        last.on_execution(pause, ptr::null_mut());
    }
}

pub fn is_on() -> bool {
    parallel().is_some()
}

/// The time of the CPU that carries out a block which calls this; `None` where all share QEMU's clock.
pub fn now_ns() -> Option<u64> {
    let parallel = parallel()?;
    let runs = parallel.running().filter(|_| parallel.is_on.load(Relaxed))?;
    // SAFETY: it adds to QEMU's count what this CPU has carried out; it takes that count's own lock.
    unsafe { (parallel.functions.update)(runs) };
    u64::try_from(parallel.local().max(parallel.seen.get())).ok()
}

fn parallel() -> Option<&'static Parallel> {
    // SAFETY: what is there lives for ever. Cells are used by the thread of the CPUs only, or while that is stopped.
    unsafe { PARALLEL.load(Relaxed).as_ref() }
}

/// A CPU waits in a loop.
extern "C" fn pause(_: c_uint, _: *mut c_void) {
    if let Some(parallel) = parallel() {
        parallel.has_paused.set(true);
    }
}

/// The guest was stopped, or goes on.
extern "C" fn changed(_: *mut c_void, runs: bool, _: c_int) {
    if let Some(parallel) = parallel().filter(|_| !runs) {
        parallel.stop();
    }
}

/// QEMU asks for the time.
extern "C" fn time() -> i64 {
    parallel().map_or(0, Parallel::time)
}

/// QEMU interrupts a CPU.
extern "C" fn interrupt(state: State, mask: c_int) {
    if let Some(parallel) = parallel() {
        parallel.interrupt(state, mask);
    }
}

/// QEMU asks whether a CPU that has halted and has no work is idle.
extern "C" fn idle(_: State) -> bool {
    parallel().is_none_or(Parallel::idle)
}

impl Parallel {
    /// The thread of the CPUs, which calls this, carries out its first block.
    fn begin(&self) -> Result<(), String> {
        // SAFETY: a variable of this thread, whose address stays.
        let current = unsafe { &*required::<*const AtomicPtr<c_void>>(c"current_cpu")? };
        // SAFETY: a number of one of its CPUs.
        let found = |number| unsafe { (self.functions.find)(number) };
        let mut pauses = self.pauses.take().into_iter();
        let cpus: Vec<Cpu> = (0..interface().cpus)
            .map(|number| Cpu {
                state: found(number),
                local: Cell::new(0),
                rest_fs: Cell::new(0),
                pauses: Cell::new((0, 0)),
                shares: Cell::new(false),
                still: pauses.next().unwrap_or_default(),
                goes_on: Cell::new(NEVER),
                owes_ns: Cell::new(0),
            })
            .collect();
        if cpus.iter().any(|cpu| cpu.state.is_null()) {
            return Err("QEMU has fewer CPUs than it says".to_owned());
        }
        let _ = self.current.set(current);
        // SAFETY: always successful.
        self.thread.set(unsafe { libc::pthread_self() });
        let _ = self.cpus.set(cpus);
        Places::find(&self.functions)?.fill();
        Ok(())
    }

    fn cpus(&self) -> &[Cpu] {
        self.cpus.get().map_or(&[], Vec::as_slice)
    }

    fn time(&self) -> i64 {
        // SAFETY: always successful.
        let is_other = unsafe { libc::pthread_self() } != self.thread.get();
        if is_other {
            return if self.is_on.load(Relaxed) { self.guest_time() } else { self.reckoned() };
        }
        if self.is_asking.get() {
            return 0;
        }
        let runs = self.running();
        if !self.is_on.load(Relaxed) {
            // SAFETY: it only reads.
            if runs.is_some() || unsafe { (self.functions.is_locked)() } {
                return self.reckoned();
            }
            self.start();
        }
        if runs.is_some() {
            return self.see();
        }
        // SAFETY: it only reads.
        if unsafe { (self.functions.is_locked)() } { self.between_turns() } else { self.before_turn() }
    }

    /// QEMU's own reckoning.
    fn reckoned(&self) -> i64 {
        // SAFETY: QEMU calls here where it would call that.
        unsafe { (self.functions.time_ns)() }
    }

    /// The guest's time: no CPU that runs is behind.
    fn guest_time(&self) -> i64 {
        self.bias.load(Relaxed) + (self.folded.load(Relaxed) << self.shift)
    }

    fn set_guest_time(&self, time: i64) {
        let counted = self.counted.load(Relaxed);
        self.bias.store(time - (counted << self.shift), Relaxed);
        self.folded.store(counted, Relaxed);
    }

    /// The CPU that carries code out now.
    fn running(&self) -> Option<State> {
        let state = self.current.get()?.load(Relaxed);
        // SAFETY: a CPU's structure lives as long as QEMU.
        let runs = !state.is_null() && unsafe { state.cast::<u8>().add(self.runs_at).read() } != 0;
        runs.then_some(state)
    }

    fn start(&self) {
        let now = self.reckoned();
        self.folded.store(self.counted.load(Relaxed), Relaxed);
        for cpu in self.cpus() {
            cpu.local.set(now);
        }
        self.horizon.set(self.next_horizon(now));
        self.followed.set((now, NEVER));
        self.turn.set(0);
        self.turn_counted.set(self.counted.load(Relaxed));
        self.stalled_fs.set(0);
        self.has_paused.set(false);
        self.seen.set(now);
        self.is_on.store(true, Relaxed);
    }

    /// The guest was stopped: its time is that of the CPU that is ahead.
    fn stop(&self) {
        if self.is_on.swap(false, Relaxed) {
            self.settle();
            let ahead = self.cpus().iter().map(|cpu| cpu.local.get()).max().unwrap_or(0);
            self.set_guest_time(ahead.max(self.guest_time()).max(self.seen.get()));
        }
    }

    fn next_horizon(&self, time: i64) -> i64 {
        (time / self.quantum.get() + 1) * self.quantum.get()
    }

    /// When the next timer is due.
    fn next_timer(&self) -> i64 {
        self.is_asking.set(true);
        // SAFETY: it reads the lists of timers, under their locks; for it, it is the time 0.
        let due = unsafe { (self.functions.deadline_ns)(VIRTUAL_CLOCK, ALL_TIMERS) };
        self.is_asking.set(false);
        if due < 0 { i64::MAX } else { due }
    }

    fn is_idle(&self, cpu: &Cpu) -> bool {
        self.is_asking.set(true);
        // SAFETY: it only reads.
        let idles = unsafe { (self.functions.is_idle)(cpu.state) };
        self.is_asking.set(false);
        idles
    }

    fn running_cpus(&self) -> impl Iterator<Item = &Cpu> {
        self.cpus().iter().filter(|cpu| !self.is_idle(cpu))
    }

    /// Add what the CPU whose turn it is has carried out to its local time.
    fn settle(&self) {
        let cpu = &self.cpus()[self.turn.get()];
        let (mut local, rest_fs) = self.local_with_rest();
        cpu.rest_fs.set(rest_fs);
        self.stalled_fs.set(0);
        self.turn_counted.set(self.counted.load(Relaxed));
        if self.has_paused.replace(false) {
            local = self.after_pause(cpu, local);
        }
        cpu.local.set(local);
    }

    /// The first pause of a quantum is short: another CPU may yet do what is waited for. Then the rest passes.
    fn after_pause(&self, cpu: &Cpu, local: i64) -> i64 {
        let quantum = self.horizon.get();
        let (before, count) = cpu.pauses.get();
        let count = if before == quantum { count + 1 } else { 1 };
        cpu.pauses.set((quantum, count));
        let end = quantum.min(self.next_timer());
        if count > SHORT_PAUSES && self.cpus().len() > 1 {
            local.max(end)
        } else {
            local + self.pace.get().map_or(PAUSE_INSTRUCTIONS << self.shift, |pace| pace.pause_ns)
        }
    }

    /// A CPU that runs reads the clock.
    fn see(&self) -> i64 {
        // SAFETY: QEMU asks for the time where it may be read: it ends itself elsewhere.
        unsafe { (self.functions.instructions)() };
        let seen = self.local().max(self.seen.get());
        self.seen.set(seen);
        seen
    }

    /// The local time of the CPU whose turn it is.
    fn local(&self) -> i64 {
        self.local_with_rest().0
    }

    fn local_with_rest(&self) -> (i64, i64) {
        let more = self.counted.load(Relaxed) - self.turn_counted.get();
        let cpu = &self.cpus()[self.turn.get()];
        match self.pace.get() {
            None => (cpu.local.get() + (more << self.shift), 0),
            Some(pace) => {
                let fs = cpu.rest_fs.get() + more * pace.instruction_fs + self.stalled_fs.get();
                (cpu.local.get() + fs / FS_PER_NS, fs % FS_PER_NS)
            }
        }
    }

    fn follow(&self, times: &Times) {
        let Some(runs) = self.running() else { return };
        // SAFETY: it adds to QEMU's count what this CPU has carried out; it takes that count's own lock.
        unsafe { (self.functions.update)(runs) };
        self.settle();
        self.quantum.set(times.quantum_ns);
        self.pace.set(Some(Pace { instruction_fs: times.instruction_fs as i64, pause_ns: times.pause_ns }));
    }

    #[inline(always)]
    fn stall(&self, stall: Stall) {
        let (Some(pace), Some(budget)) = (self.pace.get(), self.budget.get()) else { return };
        let Some(runs) = self.running().filter(|_| self.is_on.load(Relaxed)) else { return };
        let fs = stall.fs as i64;
        self.stalled_fs.set(self.stalled_fs.get() + fs);
        let owed_fs = self.owed_fs.get() + fs;
        self.owed_fs.set(owed_fs % pace.instruction_fs);
        let ends = stall.is_shared && !self.is_alone.get();
        if ends {
            self.cpus()[self.turn.get()].shares.set(true);
        }
        let instructions = if ends { i64::MAX } else { owed_fs / pace.instruction_fs };
        // SAFETY: this CPU calls here from within a block.
        unsafe { budget.take(runs, instructions) }
    }

    /// Timers may run now: at the guest's time, which follows the CPUs.
    fn between_turns(&self) -> i64 {
        self.rests.store(false, Relaxed);
        self.settle();
        let now = self.guest_time();
        // QEMU asks twice in a row.
        let known = (now, self.counted.load(Relaxed));
        if self.followed.get() == known {
            return now;
        }
        let due = self.next_timer();
        let behind = self.running_cpus().map(|cpu| cpu.local.get().max(now)).min();
        let end = self.horizon.get().min(due);
        match behind {
            Some(behind) if behind >= end && end > now => {
                let reached = behind / self.quantum.get() * self.quantum.get();
                let time = due.min(reached.max(end));
                self.set_guest_time(time);
                self.followed.set((time, known.1));
                self.horizon.set(self.next_horizon(time));
                time
            }
            _ => {
                self.followed.set(known);
                now
            }
        }
    }

    /// How many instructions the CPU whose turn begins may carry out is what the time leaves until the next timer.
    fn before_turn(&self) -> i64 {
        self.settle();
        let state = self.current.get().map_or(ptr::null_mut(), |current| current.load(Relaxed));
        let (now, due) = (self.guest_time(), self.next_timer());
        let Some(number) = self.cpus().iter().position(|cpu| cpu.state == state) else { return now };
        self.turn.set(number);
        if due <= now {
            return now;
        }
        let cpu = &self.cpus()[number];
        if self.is_idle(cpu) {
            return now;
        }
        if self.horizon.get() <= now {
            // An idle guest was moved on.
            self.horizon.set(self.next_horizon(now));
        }
        self.is_alone.set(self.running_cpus().all(|other| other.state == state));
        let end = if self.is_alone.get() { due } else { due.min(self.horizon.get()) };
        let (local, stops) = self.after_pauses(cpu, cpu.local.get().max(now));
        cpu.local.set(local);
        let end = end.min(stops);
        let Some(pace) = self.pace.get() else {
            if local >= end && local == cpu.goes_on.get() {
                self.leave(state, now);
            }
            return due - (end - local).max(LEAST_INSTRUCTIONS << self.shift);
        };
        let fitting = pace.fitting(self.end_among_others(cpu, end) - local, cpu.rest_fs.get());
        if fitting <= 0 {
            self.leave(state, now);
        }
        self.owed_fs.set(0);
        due - (fitting.max(LEAST_INSTRUCTIONS) << self.shift)
    }

    fn number_of(&self, cpu: &Cpu) -> usize {
        self.cpus().iter().position(|other| ptr::eq(other, cpu)).unwrap_or(0)
    }

    /// The CPU whose turn it is stands still for so long, once its block has ended.
    fn pause_after(&self, length: i64) {
        if self.began.get() == NEVER {
            return;
        }
        if let Some(runs) = self.running() {
            self.cpus()[self.turn.get()].owes_ns.set(length);
            // SAFETY: the turn ends with this block.
            unsafe { (self.exit)(runs) };
        }
    }

    fn begin_pauses(&self, now: i64) {
        if self.began.get() != NEVER || !pauses::are_wanted() {
            return;
        }
        self.began.set(begin_of_pauses(now));
        if let Some(runs) = self.running() {
            // SAFETY: the turn ends with this block: the next one knows of the pauses.
            unsafe { (self.exit)(runs) };
        }
    }

    /// The CPU whose turn it would be carries nothing out.
    fn leave(&self, state: State, now: i64) {
        // SAFETY: it leaves before it carries anything out.
        unsafe { (self.exit)(state) };
        self.followed.set((now, NEVER));
    }

    /// When a CPU that would go on at that time does, and when it stands still next.
    fn after_pauses(&self, cpu: &Cpu, time: i64) -> (i64, i64) {
        let began = self.began.get();
        if began == NEVER {
            return (time, i64::MAX);
        }
        let owes_ns = cpu.owes_ns.replace(0);
        if owes_ns > 0 {
            pauses::made(self.number_of(cpu), time - began, owes_ns);
        }
        let (goes_on, stops) = cpu.still.after(time - began + owes_ns);
        if goes_on > time - began {
            cpu.goes_on.set(goes_on + began);
        }
        (goes_on + began, stops.saturating_add(began))
    }

    /// CPUs that take a line from each other have their turns in the order of their times.
    fn end_among_others(&self, cpu: &Cpu, end: i64) -> i64 {
        let local = cpu.local.get();
        let others = || self.running_cpus().filter(|other| !ptr::eq(*other, cpu));
        if cpu.shares.get() && others().any(|other| other.local.get() < local) {
            return local;
        }
        cpu.shares.set(false);
        let ahead = others().filter(|other| other.shares.get() && other.local.get() > local);
        ahead.map(|other| other.local.get()).fold(end, i64::min)
    }

    /// A CPU that idles is woken at the time of the one that does it, or of the timer.
    fn interrupt(&self, state: State, mask: c_int) {
        // SAFETY: always successful.
        let is_own = unsafe { libc::pthread_self() } == self.thread.get();
        let woken = self
            .cpus()
            .iter()
            .find(|cpu| cpu.state == state)
            .filter(|cpu| is_own && self.is_on.load(Relaxed) && self.is_idle(cpu));
        // SAFETY: QEMU's own arguments, for the function that this one stands for.
        let interrupt = || unsafe { (self.functions.interrupt)(state, mask) };
        let Some(cpu) = woken else { return interrupt() };
        let runs = self.running();
        let time = match runs {
            Some(waker) => {
                // SAFETY: it adds to QEMU's count what this CPU has carried out; it takes that count's own lock.
                unsafe { (self.functions.update)(waker) };
                self.settle();
                self.cpus()[self.turn.get()].local.get()
            }
            None => self.guest_time(),
        };
        cpu.local.set(cpu.local.get().max(time));
        interrupt();
        if let Some(waker) = runs.filter(|_| self.is_alone.replace(false)) {
            // SAFETY: the turn ends with this block: from now on two run.
            unsafe { (self.functions.kick)(waker) };
        }
    }

    fn idle(&self) -> bool {
        // SAFETY: always successful.
        if unsafe { libc::pthread_self() } != self.thread.get() {
            return self.rests.load(Relaxed) || !self.is_on.load(Relaxed);
        }
        if !self.is_asking.get() {
            self.rests.store(true, Relaxed);
        }
        true
    }
}
