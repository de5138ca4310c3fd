//! What a seed changes in a guest's kernel.
//! Replicates under the virtual clock are different trials only because of it.

use std::io;
use std::os::fd::AsRawFd;

use crate::disk::fs::File;
use crate::errno;

/// `struct rand_pool_info` of linux/random.h, with its buffer.
#[repr(C)]
struct PoolInfo {
    entropy_bits: libc::c_int,
    buffer_bytes: libc::c_int,
    buffer: [u64; 8],
}

/// linux/random.h: `_IOW('R', 0x03, int[2])` and `_IO('R', 0x07)`.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// Kernels before 5.18 draw random words from batches that a reseed does not change.
/// Every fork draws one of the 8 words in a batch (its stack canary).
const BATCHED_WORDS: usize = 8;

/// Reseed the kernel's random generator with `entropy`.
/// All that the kernel draws afterwards depends on it: address-space layouts above all. Needs CAP_SYS_ADMIN.
pub fn mix(entropy: u64) -> Result<(), String> {
    let refused = |error| format!("/dev/random: {}", errno::of::<io::Error>(error));
    let random = File::open("/dev/random").map_err(refused)?;
    let buffer = expand(entropy);
    let info = PoolInfo { entropy_bits: 512, buffer_bytes: 64, buffer };
    // SAFETY: the structure is what RNDADDENTROPY reads, RNDRESEEDCRNG takes nothing.
    let done = unsafe {
        libc::ioctl(random.as_raw_fd(), RNDADDENTROPY, &info) == 0
            && libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG) == 0
    };
    if !done {
        return Err(refused(io::Error::last_os_error()));
    }
    (0..BATCHED_WORDS).try_for_each(|_| draw_word()).map_err(refused)
}

/// 64 bytes, each of which depends on all of `entropy`.
/// The SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn expand(entropy: u64) -> [u64; 8] {
    let mut state = entropy;
    std::array::from_fn(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

fn draw_word() -> io::Result<()> {
    // SAFETY: the child does nothing but end.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it ends the child.
        0 => unsafe { libc::_exit(0) },
        // SAFETY: it waits for its child.
        child => match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expansion_is_splitmix64() {
        // First outputs for the seed 1234567, as published with Vigna's reference
        // implementation.
        assert_eq!(
            expand(1_234_567)[..3],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
