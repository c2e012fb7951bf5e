//! System V IPC objects stay when no process uses them any more, and count as memory of the
//! sandbox. Filled with them, the sandbox has no room for anything, and the kernel would kill the
//! guest after the commands. So the guest removes those that are out of use, once the kernel has
//! killed for want of memory. It asks for no memory itself.
//!
//! In a range of ids the kernel bounds them. The guest could not remove them there, because they
//! belong to other users.

use super::guest::Guest;
use super::sys::{self, SystemV, SystemVObject};

/// So many semaphores of a set are asked who used them last.
const MOST_ASKED: i32 = 32;

impl Guest {
    /// Makes room if the kernel has killed for want of memory since this was last called.
    pub(super) fn make_room_after_kills(&mut self) {
        if !self.config.switch_user && self.memory_events.has_new() {
            remove_unused();
        }
    }
}

fn remove_unused() {
    for kind in [SystemV::Segments, SystemV::Queues, SystemV::Semaphores] {
        for place in 0..=sys::last_system_v(kind) {
            if let Some(object) = sys::system_v_at(kind, place).filter(|object| !is_used(object)) {
                sys::remove_system_v(kind, object.id());
            }
        }
    }
}

/// Tells if a process has it attached, or one that made or used it last is alive.
fn is_used(object: &SystemVObject) -> bool {
    match *object {
        SystemVObject::Segment { attached, maker, .. } => attached > 0 || sys::is_alive(maker),
        SystemVObject::Queue { sender, receiver, .. } => sys::is_alive(sender) || sys::is_alive(receiver),
        SystemVObject::Semaphores { id } => {
            (0..MOST_ASKED).map_while(|number| sys::last_user_of_semaphore(id, number)).any(sys::is_alive)
        }
    }
}
