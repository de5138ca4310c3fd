//! What the lens is told on QEMU's command line: words such as `depth=counts`.

use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Counts,
    Functions,
}

impl Depth {
    pub fn word(self) -> &'static str {
        match self {
            Depth::Counts => "counts",
            Depth::Functions => "functions",
        }
    }
}

/// `events` is the file that QEMU writes the agent's events to, `plan` begins with the key of each event's line,
/// `symbols` are the kernel's, and the document is written to `costs`; what the scheduler decided to `decisions`. `machine`
/// describes the one that is modelled, if any, and `shared` gets when tasks access memory that they share.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub depth: Depth,
    pub events: PathBuf,
    pub plan: PathBuf,
    pub symbols: PathBuf,
    pub costs: PathBuf,
    pub decisions: Option<PathBuf>,
    pub machine: Option<PathBuf>,
    pub shared: Option<PathBuf>,
}

impl Arguments {
    /// Read the words. The error says which is missing or wrong.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Arguments, String> {
        let (mut depth, mut decisions) = (None, None);
        let mut files = [const { None }; 6];
        const NAMES: [&str; 6] = ["events", "plan", "symbols", "costs", "machine", "shared"];
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
            match (name, NAMES.iter().position(|known| *known == name)) {
                ("depth", _) => depth = Some(parse_depth(value)?),
                ("decisions", _) if !value.is_empty() => decisions = Some(PathBuf::from(value)),
                (_, Some(place)) if !value.is_empty() => files[place] = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown argument {word:?}; expected depth, decisions, {}", NAMES.join(", "))),
            }
        }
        if decisions.is_some() && depth == Some(Depth::Counts) {
            return Err("decisions need depth=functions".to_owned());
        }
        let missing = |name: &str| format!("the argument {name} is missing");
        let (machine, shared) = (files[4].take(), files[5].take());
        let mut file = |place: usize| files[place].take().ok_or_else(|| missing(NAMES[place]));
        Ok(Arguments {
            depth: depth.ok_or_else(|| missing("depth"))?,
            events: file(0)?,
            plan: file(1)?,
            symbols: file(2)?,
            costs: file(3)?,
            decisions,
            machine,
            shared,
        })
    }
}

/// The number behind a word's name.
pub fn whole(word: &str, name: &str) -> Result<u64, String> {
    let number = word.strip_prefix(name).and_then(|value| value.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("{word:?} has no number from 1 on"))
}

fn parse_depth(value: &str) -> Result<Depth, String> {
    [Depth::Counts, Depth::Functions]
        .into_iter()
        .find(|depth| depth.word() == value)
        .ok_or_else(|| format!("depth is {value:?}; expected counts or functions"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Arguments, String> {
        Arguments::parse(words.split(' '))
    }

    #[test]
    fn all_arguments_are_required() {
        let found = parsed("depth=functions events=/e plan=/p symbols=/s costs=/c=d").unwrap();
        assert_eq!((found.depth, found.costs), (Depth::Functions, PathBuf::from("/c=d")));
        assert_eq!(found.machine, None);
        let with_machine = parsed("depth=functions events=/e plan=/p symbols=/s costs=/c machine=/m").unwrap();
        assert_eq!(with_machine.machine, Some(PathBuf::from("/m")));
        assert_eq!(parsed("depth=counts events=/e plan=/p costs=/c").unwrap_err(), "the argument symbols is missing");
        assert_eq!(parsed("events=/e plan=/p symbols=/s costs=/c").unwrap_err(), "the argument depth is missing");
    }

    #[test]
    fn a_number_is_a_whole_one() {
        assert_eq!(whole("turn=1000", "turn="), Ok(1000));
        assert!(
            whole("turn=0", "turn=").is_err() && whole("turn=-1", "turn=").is_err() && whole("turn=", "turn=").is_err()
        );
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(parsed("depth=all").unwrap_err().contains("expected counts or functions"));
        assert!(parsed("colour=blue").unwrap_err().starts_with("unknown argument"));
        assert_eq!(parsed("depth=counts decisions=/d").unwrap_err(), "decisions need depth=functions");
        assert!(parsed("events=").is_err() && parsed("events").is_err());
    }
}
