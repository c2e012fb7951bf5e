//! The kernel's capabilities, each as a mask: what a sandbox's processes may hold, and what a spec may drop.

macro_rules! capabilities {
    ($($name:ident = $bit:literal,)*) => {
        $(
            #[doc = concat!("`CAP_", stringify!($name), "`.")]
            pub const $name: u64 = 1 << $bit;
        )*

        /// Every one that the kernel has, in its order.
        const ALL: &[(&str, u64)] = &[$((stringify!($name), $name),)*];
    };
}

capabilities! {
    CHOWN = 0,
    DAC_OVERRIDE = 1,
    DAC_READ_SEARCH = 2,
    FOWNER = 3,
    FSETID = 4,
    KILL = 5,
    SETGID = 6,
    SETUID = 7,
    SETPCAP = 8,
    LINUX_IMMUTABLE = 9,
    NET_BIND_SERVICE = 10,
    NET_BROADCAST = 11,
    NET_ADMIN = 12,
    NET_RAW = 13,
    IPC_LOCK = 14,
    IPC_OWNER = 15,
    SYS_MODULE = 16,
    SYS_RAWIO = 17,
    SYS_CHROOT = 18,
    SYS_PTRACE = 19,
    SYS_PACCT = 20,
    SYS_ADMIN = 21,
    SYS_BOOT = 22,
    SYS_NICE = 23,
    SYS_RESOURCE = 24,
    SYS_TIME = 25,
    SYS_TTY_CONFIG = 26,
    MKNOD = 27,
    LEASE = 28,
    AUDIT_WRITE = 29,
    AUDIT_CONTROL = 30,
    SETFCAP = 31,
    MAC_OVERRIDE = 32,
    MAC_ADMIN = 33,
    SYSLOG = 34,
    WAKE_ALARM = 35,
    BLOCK_SUSPEND = 36,
    AUDIT_READ = 37,
    PERFMON = 38,
    BPF = 39,
    CHECKPOINT_RESTORE = 40,
}

/// The capabilities that containers of Docker hold where nothing is dropped.
pub const DOCKER_DEFAULT: u64 = CHOWN
    | DAC_OVERRIDE
    | FOWNER
    | FSETID
    | KILL
    | SETGID
    | SETUID
    | SETPCAP
    | NET_BIND_SERVICE
    | NET_RAW
    | SYS_CHROOT
    | MKNOD
    | AUDIT_WRITE
    | SETFCAP;

/// Returns the mask that a name stands for: `ALL`, or one such as `CAP_CHOWN` or `chown`.
pub fn mask(name: &str) -> Option<u64> {
    let upper = name.to_ascii_uppercase();
    let plain = upper.strip_prefix("CAP_").unwrap_or(&upper);
    match plain {
        "ALL" => Some(u64::MAX),
        _ => ALL.iter().find(|(known, _)| *known == plain).map(|(_, mask)| *mask),
    }
}

/// Lists the names in a mask, in the kernel's order and without `CAP_`.
pub fn names(mask: u64) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |(_, one)| mask & one != 0).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_in_any_case_with_and_without_its_prefix() {
        for name in ["CAP_CHECKPOINT_RESTORE", "cap_checkpoint_restore", "CHECKPOINT_RESTORE"] {
            assert_eq!(mask(name), Some(1 << 40), "{name}");
        }
        assert_eq!(mask("all"), Some(u64::MAX));
        for name in ["", "CAP_", "CAP_NONSENSE", "CAP_CAP_CHOWN", "chown "] {
            assert_eq!(mask(name), None, "{name}");
        }
    }

    #[test]
    fn a_mask_is_named_in_the_kernels_order() {
        assert_eq!(names(BPF | CHOWN | KILL).collect::<Vec<_>>(), ["CHOWN", "KILL", "BPF"]);
        assert_eq!((names(u64::MAX).count(), names(0).count()), (41, 0));
    }
}
