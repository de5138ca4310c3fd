//! What is said of services, in JSON: to who asks a keeper, and to Ajuste on standard output.

use serde::{Deserialize, Serialize};

/// What the keeper says once the service is ready.
pub const READY: &str = "ready";
/// What a keeper can be asked to do.
pub const BEGIN: &str = "begin";
pub const ACCOUNT: &str = "account";
pub const STOP: &str = "stop";

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
}

impl Ended {
    pub fn words(self) -> String {
        match (self.exit_code, self.signal) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        }
    }
}

/// What a service used from the beginning of its account to the end of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub cpu_ns: u64,
    pub peak_rss_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// One service of a trial. `died` is there if it ended before its account, `killed` if it did not end when asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub name: String,
    #[serde(rename = "use")]
    pub used: Option<Use>,
    pub died: Option<Ended>,
    pub killed: bool,
    pub log: String,
}

/// Why a service did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    pub name: String,
    pub why: String,
    pub log: String,
}

/// The line that is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    AjusteServices(Vec<Account>),
    AjusteServiceFailed(NotStarted),
}

impl Said {
    pub fn print(&self) {
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}
