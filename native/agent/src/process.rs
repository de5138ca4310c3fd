//! Processes of a trial: started, limited, watched, accounted for.

pub mod account;
pub mod area;
pub mod capture;
pub mod cgroup;
pub mod enclosure;
pub mod image;
pub mod interrupts;
pub mod launch;
pub mod lifetime;
pub mod lifted;
pub mod load;
pub mod pauses;
pub mod roll;
pub mod supervise;
pub mod surroundings;
pub mod wakeup;
