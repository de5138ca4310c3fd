//! The lens: a plugin of QEMU that counts what each task of a guest carries out, without disturbing anything.
//!
//! It is loaded with `-plugin libajuste_lens.so,depth=…,events=…,plan=…,symbols=…,costs=…` and writes one document when
//! the workload of a trial has ended; with `decisions=…` another one of what the scheduler decided. With `machine=…` it
//! models one, which may keep the guest's time. With nothing but `depth=halts` it only keeps the clock of guests with
//! several CPUs right. `turn=NS` makes their turns shorter; `parallel=NS` gives each CPU a clock of its own, by which
//! `pauses=FILE` has some stand still for a while, and `places=FILE` whichever comes to a place of a program.

mod arguments;
mod block;
mod cache;
mod callbacks;
mod clock;
mod counters;
mod decisions;
mod document;
mod exports;
mod fault;
mod halts;
mod hierarchy;
mod instruction;
mod interface;
mod lens;
mod machine;
mod mark;
mod memory;
mod misses;
mod model;
mod modelled;
mod parallel;
mod pauses;
mod predictor;
mod running;
mod sharing;
mod sites;
mod symbols;
mod tables;
mod task;
mod translation;
mod translations;
mod tree;
mod turns;
mod walk;

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use arguments::Arguments;
use interface::{About, Id, Interface, RawBlock};
use lens::Lens;
use mark::Marks;

/// Which version of the interface the lens asks for. QEMU reads it right after it has loaded the library.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Carried out when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    qemu_plugin_version.store(interface::wanted_version(), Ordering::Relaxed);
}

/// QEMU calls it once, before any CPU runs. Returns 0 if the lens can be used.
///
/// # Safety
/// `about` and `words` are QEMU's own; there are `count` words, each of which ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    about: *const About,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: see above.
    let words = (0..count).map(|place| unsafe { CStr::from_ptr(*words.add(place)) });
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    // SAFETY: see above.
    match install(id, unsafe { &*about }, &words) {
        Ok(()) => 0,
        Err(reason) => {
            eprintln!("lens: {reason}");
            1
        }
    }
}

fn install(id: Id, about: &About, words: &[String]) -> Result<(), String> {
    if let Some(problem) = about.problem() {
        return Err(problem);
    }
    let interface = Interface::find(about)?;
    let (turns, words): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| [TURN, PARALLEL, PAUSES, PLACES].iter().any(|name| word.starts_with(name)));
    let paused = turns.iter().any(|word| word.starts_with(PAUSES) || word.starts_with(PLACES));
    if paused {
        pauses::want();
    }
    if let Some(file) = turns.iter().find_map(|word| word.strip_prefix(PLACES)) {
        pauses::read_sites(Path::new(file))?;
    }
    let pauses = match turns.iter().find_map(|word| word.strip_prefix(PAUSES)) {
        Some(file) => pauses::read(Path::new(file), interface.cpus as usize)?,
        None => Vec::new(),
    };
    if let Some(turn) = turns.iter().find(|word| word.starts_with(TURN)) {
        turns::shorten(arguments::whole(turn, TURN)?)?;
    }
    if let Some(turn) = turns.iter().find(|word| word.starts_with(PARALLEL)) {
        parallel::prepare(arguments::whole(turn, PARALLEL)?, interface.cpus, pauses)?;
    } else if !pauses.is_empty() {
        return Err("pauses need CPUs that run at once".to_owned());
    }
    if words.iter().any(|word| *word == HALTS_ONLY) {
        if paused {
            let file =
                |name| words.iter().find_map(|word| word.strip_prefix(name)).ok_or("pauses need events and plan");
            pauses::await_start(Marks::open(Path::new(file("events=")?), Path::new(file("plan=")?))?);
        }
        interface.on_translation(id, may_halt);
        return Ok(());
    }
    let arguments = Arguments::parse(words.into_iter().map(String::as_str))?;
    let lens = Lens::new(arguments)?;
    if let Some(model) = &lens.model {
        if model.times().is_some() {
            parallel::prepare_stalls()?;
        }
        memory::find_functions()?;
        tables::find_functions()?;
        modelled::keep(model.machine());
    }
    callbacks::keep(lens);
    interface.on_translation(id, translated);
    Ok(())
}

const HALTS_ONLY: &str = "depth=halts";
const TURN: &str = "turn=";
const PARALLEL: &str = "parallel=";
const PAUSES: &str = "pauses=";
const PLACES: &str = "places=";

extern "C" fn may_halt(_: Id, block: *mut RawBlock) {
    // SAFETY: QEMU passed the block for this callback.
    let block = unsafe { interface::Block::new(block) };
    keep_time(&block);
    pauses::watch(&block);
}

fn keep_time(block: &interface::Block) {
    if parallel::is_on() {
        parallel::watch(block);
    } else {
        turns::begin(block);
        halts::watch(block);
    }
}

extern "C" fn translated(_: Id, block: *mut RawBlock) {
    let lens = callbacks::lens();
    // SAFETY: QEMU passed the block for this callback.
    let block = unsafe { interface::Block::new(block) };
    if interface::interface().cpus > 1 {
        callbacks::watch_turns(&block);
    }
    if interface::interface().cpus > 1 || parallel::is_on() {
        keep_time(&block);
    }
    let (depth, shares) = (lens.depth(), lens.shares());
    translation::instrument(&block, depth, &lens.symbols, &mut lens.blocks, lens.sites.as_ref(), shares);
    modelled::instrument(&block);
}
