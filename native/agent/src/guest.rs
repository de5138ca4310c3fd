//! The first process of a guest.
//! It prepares the machine, says hello, stops at the gate, carries out its plan and powers off.
//!
//! It powers off in every case: a guest that hangs says nothing about why.

pub mod boot;
pub mod firmware;
pub mod gate;
pub mod modules;
pub mod mounts;
pub mod perturb;
pub mod rights;

use std::io::{self, Write};

use rustix::system::RebootCommand;

use crate::clock;
use crate::disk;
use crate::errno;
use crate::event::{Event, Gate, Stage};
use crate::guest::boot::Boot;
use crate::machine;
use crate::plan::{PLAN_LIMIT_BYTES, Plan};
use crate::ports::{EVENT_PORT, Ports};
use crate::process::cgroup;
use crate::process::lifted;
use crate::process::surroundings::Surroundings;
use crate::stream::{EventStream, KEY_BYTES, Key};
use crate::trial::Trial;

/// The key of the events, then the plan.
const PLAN_ITEM: &str = "opt/ajuste/plan";

/// Whether this process was started by a kernel as its init.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init")
}

/// Be the first process. Never returns.
pub fn run() -> ! {
    say_panics_on(EVENT_PORT, None);
    if let Err(error) = live() {
        eprintln!("ajuste: {error}");
    }
    power_off()
}

/// All of a guest's life. An error means that not even events could be said.
fn live() -> io::Result<()> {
    let prepared = mounts::mount_all().and_then(|()| Boot::read());
    let event_port = prepared.as_ref().map_or(EVENT_PORT, |boot| boot.event_port);
    say_panics_on(event_port, None);
    let ports = Ports::open(event_port)?;
    let mut stream = EventStream::new(&ports);
    match prepared.and_then(|boot| prepare(&boot).map(|()| boot)) {
        Ok(boot) => carry_on(&boot, &ports, &mut stream),
        Err(reason) => stream.fail(Stage::Boot, reason, None),
    }
}

fn prepare(boot: &Boot) -> Result<(), String> {
    modules::load(&boot.modules)?;
    bring_loopback_up()?;
    cgroup::enable_cpu();
    rights::settle()?;
    lifted::lift()
}

fn carry_on<W: Write>(boot: &Boot, ports: &Ports, stream: &mut EventStream<W>) -> io::Result<()> {
    stream.say(Event::Hello(machine::hello(true)))?;
    gate::await_idle();
    stream.say(Event::Gate(Gate { at_ns: clock::raw_ns() }))?;
    if boot.gate {
        gate::stop(ports, boot.quiet_gate);
    }
    let item = match firmware::item(ports, PLAN_ITEM, KEY_BYTES + PLAN_LIMIT_BYTES) {
        Ok(item) => item,
        Err(reason) => return stream.fail(Stage::Plan, reason, None),
    };
    let Some((key, document)) = item.split_first_chunk::<KEY_BYTES>() else {
        return stream.fail(Stage::Plan, "the plan has no key", None);
    };
    stream.seal(*key);
    say_panics_on(boot.event_port, Some(*key));
    let plan = match Plan::parse(document) {
        Ok(plan) => plan,
        Err(reason) => return stream.fail(Stage::Plan, reason, None),
    };
    let surroundings = Surroundings { event_port: Some(boot.event_port), ..Surroundings::default() };
    let trial = Trial { plan: &plan, surroundings: &surroundings, interrupts: None, mix: Some(perturb::mix) };
    trial.carry_out(None, stream).map(|_| ())
}

/// `ip link set lo up` (netdevice(7)).
/// A kernel without a network has none, which is no error.
fn bring_loopback_up() -> Result<(), String> {
    let refused = || format!("cannot bring lo up: {}", errno::of(io::Error::last_os_error()));
    // SAFETY: the request is zeroed and then filled in as SIOCSIFFLAGS reads it; the
    // socket is closed on every path.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Ok(());
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let result = if libc::ioctl(socket, libc::SIOCSIFFLAGS, &request) == 0 { Ok(()) } else { Err(refused()) };
        libc::close(socket);
        result
    }
}

fn say_panics_on(event_port: u16, key: Option<Key>) {
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("{panic}");
        if let Ok(ports) = Ports::open(event_port) {
            let mut stream = EventStream::new(&ports);
            key.into_iter().for_each(|key| stream.seal(key));
            let _ = stream.fail(Stage::Boot, format!("the agent is broken: {panic}"), None);
        }
        power_off();
    }));
}

fn power_off() -> ! {
    disk::sync_everything();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    // Only a machine without a power switch gets here.
    let _ = rustix::system::reboot(RebootCommand::Restart);
    std::process::exit(1)
}
