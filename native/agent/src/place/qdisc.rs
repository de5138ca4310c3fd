//! The root queueing discipline of a network interface, by rtnetlink(7).
//!
//! Its value is its kind. To get back exactly, more is kept: `KIND:HANDLE:OPTIONS`, the latter two in hexadecimal. A
//! handle of 0 is that of a default, which the kernel attaches by itself when nothing else is there.

use std::ffi::CString;

use crate::disk::fs;
use crate::errno;
use crate::place::netlink::{Netlink, attribute, attributes, text};

// linux/pkt_sched.h, linux/rtnetlink.h
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STAB: u16 = 8;
const TCMSG_BYTES: usize = 20;

const SYSTEM_DEFAULT: &str = "/proc/sys/net/core/default_qdisc";
/// Queues of interfaces that are down or need none; no setting decides these.
const WITHOUT_CHOICE: [&str; 2] = [DOWN, "noqueue"];
const DOWN: &str = "noop";

/// Kinds that take back the options that they tell.
/// Others have a state that they do not tell (the tables of red and netem), or classes.
const RESTORABLE: [&str; 16] = [
    "bfifo",
    "cake",
    "codel",
    "fq",
    "fq_codel",
    "fq_pie",
    "hhf",
    "mq",
    "multiq",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "sfq",
    "tbf",
];

/// CoDel's options that are times (linux/pkt_sched.h).
const CODEL_TIMES: [(&str, [u16; 3]); 2] = [("codel", [1, 3, 5]), ("fq_codel", [1, 3, 7])];

/// One queueing discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Qdisc {
    kind: String,
    handle: u32,
    options: Vec<u8>,
    parent: u32,
    size_table: bool,
}

/// The kind of the root.
pub fn read(device: &str) -> Result<String, String> {
    Ok(Interface::open(device)?.root()?.kind)
}

/// All that is known of the present root, as [`write`] takes it.
pub fn state(device: &str) -> Result<String, String> {
    let interface = Interface::open(device)?;
    interface.state_of(&interface.root()?)
}

/// The same if it is all that is needed to get back to it.
/// The error says why it could not be put back.
pub fn keep(device: &str) -> Result<String, String> {
    let interface = Interface::open(device)?;
    let all = interface.all()?;
    let root = root_of(&all);
    let lost = |reason: String| format!("the qdisc {} of {device} could not be put back: {reason}", root.kind);
    if all.iter().any(|qdisc| qdisc.handle != 0 && qdisc.parent >> 16 == root.handle >> 16) {
        return Err(lost("it has others below it".to_owned()));
    }
    if root.handle == 0 {
        interface.check_default(&all).map_err(lost)?;
        return interface.state_of(&root);
    }
    if !RESTORABLE.contains(&root.kind.as_str()) {
        return Err(lost("it does not tell all of its state".to_owned()));
    }
    if root.size_table {
        return Err(lost("it has a size table".to_owned()));
    }
    if interface.has_filters()? {
        return Err(lost("it has filters".to_owned()));
    }
    interface.state_of(&root)
}

/// Attach a new root of a kind, or restore a [`state`].
/// A root that is of that kind already stays as it is.
pub fn write(device: &str, value: &str) -> Result<(), String> {
    let interface = Interface::open(device)?;
    let present = interface.root()?;
    if !value.contains(':') {
        if present.kind == value {
            return Ok(());
        }
        let new =
            Qdisc { kind: value.to_owned(), handle: 0, options: Vec::new(), parent: TC_H_ROOT, size_table: false };
        return interface.attach(&new);
    }
    let kept = Qdisc::parse(value).ok_or_else(|| format!("qdisc of {device}: {value:?} tells no state"))?;
    if interface.state_of(&present)? == value {
        return Ok(());
    }
    if present.handle != 0 {
        interface.remove(&present)?;
    }
    if kept.handle != 0 {
        interface.attach(&kept)?;
    }
    match interface.state_of(&interface.root()?)? {
        found if found == value => Ok(()),
        found => Err(format!("the qdisc of {device} was {value} and has become {found}")),
    }
}

impl Qdisc {
    fn kept(&self) -> String {
        let options: String = self.options.iter().map(|byte| format!("{byte:02x}")).collect();
        // What a default is like is the kernel's choice again.
        let options = if self.handle == 0 { "" } else { &options };
        format!("{}:{:x}:{options}", self.kind, self.handle)
    }

    fn parse(kept: &str) -> Option<Qdisc> {
        let mut parts = kept.split(':');
        let (kind, handle, options) = (parts.next()?, parts.next()?, parts.next()?);
        if kind.is_empty() || parts.next().is_some() || options.len() % 2 != 0 || !options.is_ascii() {
            return None;
        }
        let byte = |index| u8::from_str_radix(&options[index..index + 2], 16).ok();
        let options = (0..options.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
        let handle = u32::from_str_radix(handle, 16).ok()?;
        Some(Qdisc { kind: kind.to_owned(), handle, options, parent: TC_H_ROOT, size_table: false })
    }

    /// One µs more than reported: CoDel rounds times down twice.
    /// It counts in units of 1024 ns, and reports and takes µs. A reported time would be taken for a shorter one; one
    /// µs more always gives the same time again.
    fn options_to_write(&self) -> Vec<u8> {
        let Some((_, times)) = CODEL_TIMES.iter().find(|(kind, _)| *kind == self.kind) else {
            return self.options.clone();
        };
        let rewrite = |(kind, content): (u16, &[u8])| match content.try_into().map(u32::from_ne_bytes) {
            Ok(told_us) if times.contains(&kind) => attribute(kind, &told_us.saturating_add(1).to_ne_bytes()),
            _ => attribute(kind, content),
        };
        attributes(&self.options).flat_map(rewrite).collect()
    }

    /// Of a message of RTM_GETQDISC, if it is about the interface with this index.
    fn from_message(message: &[u8], index: i32) -> Option<Qdisc> {
        let word = |from: usize| message.get(from..from + 4)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        if word(4)? != index as u32 {
            return None;
        }
        let content = |wanted| attributes(&message[TCMSG_BYTES..]).find(|(kind, _)| *kind == wanted);
        Some(Qdisc {
            kind: text(content(TCA_KIND)?.1),
            handle: word(8)?,
            options: content(TCA_OPTIONS)
                .filter(|_| word(8) != Some(0))
                .map_or(Vec::new(), |(_, bytes)| bytes.to_vec()),
            parent: word(12)?,
            size_table: content(TCA_STAB).is_some(),
        })
    }
}

/// A network interface and a conversation about it.
struct Interface {
    index: i32,
    name: String,
    netlink: Netlink,
}

impl Interface {
    fn open(name: &str) -> Result<Interface, String> {
        let missing = |error| format!("{name}: {}", errno::of::<std::io::Error>(error));
        let c_name = CString::new(name).map_err(|_| format!("{name:?} contains a zero byte"))?;
        // SAFETY: a string with its final zero.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(missing(std::io::Error::last_os_error()));
        }
        Ok(Interface { index: index as i32, name: name.to_owned(), netlink: Netlink::open()? })
    }

    fn all(&self) -> Result<Vec<Qdisc>, String> {
        let messages = self.netlink.list(libc::RTM_GETQDISC, &self.message(0, 0));
        let messages = messages.map_err(|reason| self.refused(&reason))?;
        Ok(messages.iter().filter_map(|message| Qdisc::from_message(message, self.index)).collect())
    }

    fn root(&self) -> Result<Qdisc, String> {
        self.all().map(|all| root_of(&all))
    }

    fn state_of(&self, root: &Qdisc) -> Result<String, String> {
        // One that is down gets its default anew when it comes up.
        let waits = root.handle == 0 && !self.is_up()?;
        Ok(if waits { format!("{DOWN}:0:") } else { root.kept() })
    }

    fn is_up(&self) -> Result<bool, String> {
        // struct ifinfomsg: the index is its second word, the flags the third.
        let links = self.netlink.list(libc::RTM_GETLINK, &[0; 16]).map_err(|reason| self.refused(&reason))?;
        let word = |link: &[u8], from: usize| link.get(from..from + 4)?.first_chunk().map(|at| i32::from_ne_bytes(*at));
        let flags = links.iter().find(|link| word(link, 4) == Some(self.index)).and_then(|link| word(link, 8));
        Ok(flags.is_some_and(|flags| flags & libc::IFF_UP != 0))
    }

    /// Whether deleting what will be there brings the present defaults back.
    fn check_default(&self, all: &[Qdisc]) -> Result<(), String> {
        // A new network namespace may lack this setting.
        let Ok(system) = fs::read_to_string(SYSTEM_DEFAULT) else { return Ok(()) };
        let system = system.trim_end();
        let by_choice = |kind: &str| kind != system && kind != "mq" && !WITHOUT_CHOICE.contains(&kind);
        match all.iter().find(|qdisc| qdisc.handle == 0 && by_choice(&qdisc.kind)) {
            Some(other) => {
                Err(format!("{} is no longer the default, {system} is (net.core.default_qdisc)", other.kind))
            }
            None => Ok(()),
        }
    }

    fn has_filters(&self) -> Result<bool, String> {
        let filters = self.netlink.list(libc::RTM_GETTFILTER, &self.message(0, 0));
        Ok(!filters.map_err(|reason| self.refused(&reason))?.is_empty())
    }

    fn attach(&self, qdisc: &Qdisc) -> Result<(), String> {
        let mut body = self.message(qdisc.handle, TC_H_ROOT);
        body.extend(attribute(TCA_KIND, &[qdisc.kind.as_bytes(), b"\0"].concat()));
        if !qdisc.options.is_empty() {
            body.extend(attribute(TCA_OPTIONS, &qdisc.options_to_write()));
        }
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let done = self.netlink.request(libc::RTM_NEWQDISC, flags, &body);
        done.map_err(|reason| self.refused(&format!("{}: {reason}", qdisc.kind)))
    }

    fn remove(&self, root: &Qdisc) -> Result<(), String> {
        let done = self.netlink.request(libc::RTM_DELQDISC, 0, &self.message(root.handle, TC_H_ROOT));
        done.map_err(|reason| self.refused(&reason))
    }

    /// struct tcmsg
    fn message(&self, handle: u32, parent: u32) -> Vec<u8> {
        let mut body = vec![0; 4];
        body.extend(self.index.to_ne_bytes());
        body.extend(handle.to_ne_bytes());
        body.extend(parent.to_ne_bytes());
        body.extend([0; 4]);
        body
    }

    fn refused(&self, reason: &str) -> String {
        format!("qdisc of {}: {reason}", self.name)
    }
}

/// The kernel does not list the one of an interface that was not up yet.
fn root_of(all: &[Qdisc]) -> Qdisc {
    let none = Qdisc { kind: DOWN.to_owned(), handle: 0, options: Vec::new(), parent: TC_H_ROOT, size_table: false };
    all.iter().find(|qdisc| qdisc.parent == TC_H_ROOT).cloned().unwrap_or(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_codel_is_taken_for_what_it_was() {
        // codel_params_init and codel_dump of net/sched/sch_codel.c
        let taken = |us: u64| (us * 1000) >> 10;
        let told = |time: u64| (time << 10) / 1000;
        for time in (0..200_000).chain([4882, 97656, u64::from(u32::MAX) / 2]) {
            assert_eq!(taken(told(time) + 1), time);
        }
        let options = [attribute(1, &6999_u32.to_ne_bytes()), attribute(2, &6999_u32.to_ne_bytes())].concat();
        let expected = [attribute(1, &7000_u32.to_ne_bytes()), attribute(2, &6999_u32.to_ne_bytes())].concat();
        let qdisc = |kind: &str, options: &[u8]| {
            let (kind, options) = (kind.to_owned(), options.to_vec());
            Qdisc { kind, handle: 1, options, parent: TC_H_ROOT, size_table: false }
        };
        assert_eq!(qdisc("codel", &options).options_to_write(), expected);
        assert_eq!(qdisc("pie", &options).options_to_write(), options);
    }

    #[test]
    fn what_is_kept_says_the_same_again() {
        for kept in ["pfifo:10000:2a000000", "noqueue:0:", "fq_codel:80010000:"] {
            assert_eq!(Qdisc::parse(kept).unwrap().kept(), kept);
        }
        for wrong in ["fq", "fq:", ":1:", "fq:1:2", "fq:1:zz", "fq:1:é", "fq:x:", "fq:1::"] {
            assert_eq!(Qdisc::parse(wrong), None, "{wrong}");
        }
    }
}
