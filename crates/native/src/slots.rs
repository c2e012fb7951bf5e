//! Slots: half-made sandboxes that wait for a create. A provider that lives long may keep a few, so
//! that a create has little left to do.
//!
//! A slot goes through all steps of a plan, in the same order as any sandbox, and its guest runs. It
//! has its range of ids, its control groups with their limits, its mounts and its confinement; no
//! program has run in it. Its guest waits for its configuration, which comes with the create: the
//! secrets, the deadlines, the users and the variables. So do the id, the name, the host name, and the
//! rules of the network `egress`.
//!
//! A create takes a slot only if everything else is the same: the image with its layers, the
//! limits, the kind of network, the user, the security, and the very folders of the host that it mounts. A slot is used once. It ends with its
//! provider: the guest of a killed process reads the end of its configuration, and ends; the next
//! sweep removes its files. There are slots for root alone: the processes of an ordinary user's
//! sandboxes have that user's own id, and could reach those of a slot before it is theirs.
//! A slot of sandboxes with a disk limit has its disk. Sandboxes with a persistent workspace or the host's
//! network are made from nothing, and so are those over a directory, a tarball or an image of the store: who
//! removes an image waits for all who use its layers without a record.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use eyot::{
    ContainerSpec, EgressRules, Error, Lifecycle, Manifest, NetworkMode, Result, SandboxSpec, ValidSpec,
    WorkspaceSpec,
};

use crate::create::new_record;
use crate::egress;
use crate::image::{Image, MountPoints};
use crate::maker::{Maker, Prepared, StartedGuest, as_root};
use crate::plan::IdMap;
use crate::setup::naming_files;
use crate::unfinished::{ConfigPipe, ConfigSource, Unfinished};
use crate::users::SandboxUsers;

/// The part of a sandbox that a slot has before it is known which sandbox it becomes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    spec: SandboxSpec,
    image: Image,
    /// The folders and files that the paths of its mounts lead to.
    mounted: Vec<MountedFile>,
}

/// A file or folder of the host, whatever its path.
#[derive(Debug, Clone, PartialEq)]
struct MountedFile {
    device: u64,
    inode: u64,
}

impl MountedFile {
    fn at(path: &str) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}

impl Shape {
    /// Returns the shape of a sandbox; `None` if it can't be made from a slot.
    pub(crate) fn of(prepared: &Prepared) -> Option<Self> {
        let spec = prepared.spec.spec();
        let kind_of_network = matches!(spec.network, NetworkMode::None | NetworkMode::Egress);
        let is_of_its_own = spec.workspace == WorkspaceSpec::Ephemeral
            && prepared.image.mount_points != MountPoints::Own
            // The facts about the folder are to be those of the time of the create.
            && prepared.cow.is_empty()
            && prepared.held.is_none()
            && prepared.held_snapshot.is_none();
        if !as_root() || !kind_of_network || !is_of_its_own {
            return None;
        }
        let mounted = prepared.sources.iter().map(|path| MountedFile::at(path)).collect::<Option<_>>()?;
        Some(Self { spec: without_late_parts(spec), image: prepared.image.clone(), mounted })
    }
}

/// Takes from a spec what a slot learns late.
fn without_late_parts(spec: &SandboxSpec) -> SandboxSpec {
    SandboxSpec {
        id: None,
        name: None,
        hostname: None,
        manifest: Manifest::default(),
        env: Default::default(),
        metadata: Default::default(),
        labels: Default::default(),
        egress: EgressRules::default(),
        lifecycle: Lifecycle::default(),
        require: Default::default(),
        container: ContainerSpec::default(),
        ..spec.clone()
    }
}

/// A half-made sandbox. Dropping it removes everything of it, and blocks for a millisecond or two.
pub(crate) struct SandboxSlot {
    shape: Shape,
    unfinished: Unfinished,
    stream: UnixStream,
    channel: Option<egress::Channel>,
    config: ConfigPipe,
    map: IdMap,
    users: SandboxUsers,
    has_memory_events: bool,
}

impl Maker<'_> {
    /// Makes a slot of a shape. `None` if something outside has changed meanwhile.
    pub(crate) fn make_slot(&self, shape: &Shape) -> Result<Option<SandboxSlot>> {
        let prepared = self.prepare(&shape.spec.clone().validate()?, None)?;
        let (mut unfinished, map) = self.claim_slot(&prepared.spec, &prepared.image)?;
        let users = SandboxUsers::of(&prepared.spec, map, &prepared.image.lower)?;
        let (config, reader) = ConfigPipe::new()?;
        let mut has_memory_events = false;
        let started = self.start_guest(&prepared, &mut unfinished, (map, &users), reader, |_, has| {
            has_memory_events = has;
            Ok(())
        })?;
        let StartedGuest { stream, channel } = started;
        // As it is now that the mounts are there.
        let shape = Shape::of(&prepared).filter(|now| now == shape);
        Ok(shape.map(|shape| SandboxSlot {
            shape,
            unfinished,
            stream,
            channel,
            config,
            map,
            users,
            has_memory_events,
        }))
    }

    /// Makes a slot the sandbox of a spec. `None` if it can't be: the guest has ended, or the id is
    /// in use.
    pub(crate) fn fill_slot(
        &self,
        slot: SandboxSlot,
        prepared: &Prepared,
    ) -> Result<Option<(Unfinished, UnixStream)>> {
        let SandboxSlot { mut unfinished, stream, channel, config, map, users, has_memory_events, .. } = slot;
        let spec = &prepared.spec;
        self.check_required(spec, &unfinished)?;
        let mut record = new_record(spec, &prepared.image)?;
        record.ids = unfinished.record.ids;
        record.groups.clone_from(&unfinished.record.groups);
        record.info.isolation = unfinished.record.info.isolation.clone();
        if !unfinished.has_live_guest() || !unfinished.fill_slot(record)? {
            return Ok(None);
        }
        self.claim_name(&mut unfinished)?;
        unfinished.set_host_name(spec.hostname().as_str())?;
        let late_files = naming_files(prepared.image.mount_points, spec);
        let record = &unfinished.record;
        config.send(ConfigSource { record, spec, users: &users, map, has_memory_events, late_files })?;
        if let Some(channel) = channel {
            self.start_egress(&unfinished, channel, map)?;
        }
        Ok(Some((unfinished, stream)))
    }
}

/// The most slots of a provider. Each holds a dozen descriptors and a range of ids.
pub const MOST_SLOTS: usize = 64;

/// The slots of a provider.
#[derive(Default)]
pub(crate) struct SlotStock {
    most: usize,
    slots: Mutex<VecDeque<SandboxSlot>>,
    closed: AtomicBool,
    /// Held while slots are made: by one thread at a time.
    refill: Mutex<()>,
    /// The kind of sandbox that was made last and that no slots were made for since.
    wanted: Mutex<Option<ValidSpec>>,
}

/// The right to make slots.
pub(crate) struct Refill<'a> {
    stock: &'a SlotStock,
    _turn: MutexGuard<'a, ()>,
}

impl SlotStock {
    /// An empty stock that keeps at most this many slots.
    pub(crate) fn new(most: usize) -> Result<Self> {
        if most > MOST_SLOTS {
            return Err(Error::invalid("slots", format!("must be at most {MOST_SLOTS}, not {most}")));
        }
        Ok(Self { most, ..Self::default() })
    }

    /// Tells whether slots are kept at all.
    pub(crate) fn keeps_any(&self) -> bool {
        self.most > 0
    }

    /// Removes the slots for good. Waits for a thread that makes some.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let _turn = lock(&self.refill);
        lock(&self.slots).clear();
    }

    /// Tells how many slots there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.slots).len()
    }

    /// Takes a slot of this shape, if there is one.
    pub(crate) fn take(&self, shape: &Shape) -> Option<SandboxSlot> {
        let mut slots = lock(&self.slots);
        let index = slots.iter().position(|slot| slot.shape == *shape)?;
        slots.remove(index)
    }

    /// Waits until no other thread makes slots.
    pub(crate) fn refill(&self) -> Refill<'_> {
        Refill { stock: self, _turn: lock(&self.refill) }
    }

    /// Makes slots for more sandboxes like this one. While another thread makes some, that thread
    /// does it afterwards.
    pub(crate) fn refill_for(&self, spec: ValidSpec, mut run: impl FnMut(&Refill<'_>, &ValidSpec)) {
        *lock(&self.wanted) = Some(spec);
        // Looked at once more after each turn: whoever came meanwhile has gone again.
        while lock(&self.wanted).is_some() {
            let turn = match self.refill.try_lock() {
                Err(TryLockError::WouldBlock) => return,
                Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
                Ok(turn) => turn,
            };
            let wanted = lock(&self.wanted).take();
            if let Some(spec) = wanted {
                run(&Refill { stock: self, _turn: turn }, &spec);
            }
        }
    }

    /// Tells whether a slot of this shape is missing. The oldest slot makes room for the first one
    /// of a refill if it has another shape, so that several shapes in turn all have slots.
    fn wants(&self, shape: &Shape, is_first: bool) -> bool {
        let slots = lock(&self.slots);
        let may_replace = is_first && slots.front().is_some_and(|oldest| oldest.shape != *shape);
        !self.closed.load(Ordering::Relaxed) && (slots.len() < self.most || may_replace)
    }

    /// Adds a slot, and removes the oldest one if there is no room for both.
    fn add(&self, slot: SandboxSlot) {
        let mut slots = lock(&self.slots);
        slots.push_back(slot);
        let oldest = if slots.len() > self.most { slots.pop_front() } else { None };
        // Removing it blocks; creates take slots meanwhile.
        drop(slots);
        drop(oldest);
    }
}

impl Refill<'_> {
    /// Makes slots of the shape of a spec as long as there is room for them and `may_go_on` says
    /// so. Does nothing for a spec that can't be made from a slot.
    pub(crate) fn run(
        &self,
        maker: &Maker<'_>,
        spec: &ValidSpec,
        may_go_on: impl Fn() -> bool,
    ) -> Result<()> {
        let Some(shape) = Shape::of(&maker.prepare(spec, None)?) else { return Ok(()) };
        let mut is_first = true;
        while may_go_on() && self.stock.wants(&shape, is_first) {
            let Some(slot) = maker.make_slot(&shape)? else { return Ok(()) };
            self.stock.add(slot);
            is_first = false;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(workdir: &str) -> ValidSpec {
        let workdir = Some(eyot::SandboxPath::parse(workdir).unwrap());
        SandboxSpec { workdir, ..SandboxSpec::default() }.validate().unwrap()
    }

    #[test]
    fn slots_that_are_wanted_while_others_are_made_are_made_afterwards() {
        let stock = SlotStock::new(2).unwrap();
        let mut made = Vec::new();
        stock.refill_for(spec("/first"), |_, made_for| {
            if made.is_empty() {
                stock.refill_for(spec("/second"), |_, _| panic!("two make slots at a time"));
            }
            made.push(made_for.workdir().to_string());
        });
        assert_eq!(made, ["/first", "/second"]);
    }
}
