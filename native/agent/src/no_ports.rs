//! In place of [`ports`](crate::ports) on machines that are not x86: they have no I/O ports, so their agent serves hosts
//! only.

use std::convert::Infallible;
use std::io::{self, Write};

pub const EVENT_PORT: u16 = 0;

/// Of which there is none.
pub struct Ports(Infallible);

impl Ports {
    pub fn open(_event_port: u16) -> io::Result<Ports> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn pause_machine(&self) {
        match self.0 {}
    }

    pub fn arm_watchdog(&self) {
        match self.0 {}
    }

    pub fn firmware_select(&self, _key: u16) {
        match self.0 {}
    }

    pub fn firmware_read(&self, _bytes: &mut [u8]) {
        match self.0 {}
    }
}

impl Write for &Ports {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

pub fn forbid(_event_port: u16) {}
