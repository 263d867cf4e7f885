//! The system under a simulated session: its clock, its disks, its threads and its plug.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::seam::{Defect, Disk, Pace, StandIn};

use super::faults::Fault;
use super::log::Seen;
use super::stage::Stage;

/// 2026-11-30T12:00:00Z
const EPOCH_SECONDS: i64 = 1_796_040_000;

/// More steps than this without any time passing are one too many.
const STEPS_MAX: u64 = 5_000;

pub(super) struct System(pub(super) Arc<Stage>);

impl StandIn for System {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.0.elapsed()).unwrap();
        let jumped = SignedDuration::from_secs(self.0.scene().jumped);
        Timestamp::new(EPOCH_SECONDS, 0).unwrap() + elapsed + jumped
    }

    fn id(&self) -> Uuid {
        let millis = u64::try_from(self.now().as_millisecond()).unwrap();
        let mut scene = self.0.scene();
        scene.ids += 1;
        let count = scene.ids;
        drop(scene);
        let random = u128::from(self.0.chance.next() >> 32);
        let count = u128::from(count);
        // Version, variant, and what tells ids of one moment apart: a number that rises, and chance.
        Uuid::from_u128(u128::from(millis) << 80 | 7 << 76 | 2 << 62 | (count & 0x3FFF_FFFF) << 32 | random)
    }

    fn bits(&self) -> u32 {
        (self.0.chance.next() >> 32) as u32
    }

    fn delay(&self) -> Duration {
        let chance = &self.0.chance;
        match chance.below(10) {
            0 => chance.millis(1_000, 40_000),
            1..4 => chance.millis(1, 2_000),
            _ => chance.millis(0, 20),
        }
    }

    fn room(&self, disk: Disk, wanted: usize) -> usize {
        let (index, fault) = match disk {
            Disk::Mail => (0, Fault::MailFull),
            Disk::Journal => (1, Fault::JournalFull),
            Disk::Work => (2, Fault::WorkFull),
        };
        let until = self.0.scene().full_until[index];
        if until <= self.0.elapsed() {
            return wanted;
        }
        *self.0.scene().counts.entry(fault).or_default() += 1;
        let chance = &self.0.chance;
        if chance.percent(70) { 0 } else { chance.below(wanted) }
    }

    fn watch(&self, hint: Arc<Notify>) -> bool {
        let watch = self.0.weather.watch;
        if watch {
            self.0.scene().hint = Some(hint);
        } else {
            self.0.fault(Fault::NoWatch);
        }
        watch
    }

    fn pace(&self) -> Pace {
        let now = self.0.elapsed();
        let mut scene = self.0.scene();
        scene.steps += 1;
        scene.pace = if scene.pace.0 == now { (now, scene.pace.1 + 1) } else { (now, 1) };
        if scene.pace.1 > STEPS_MAX {
            scene.killed = true;
            drop(scene);
            self.0.saw(Seen::Spins);
            return Pace::Stop;
        }
        if scene.kill_at_step.is_some_and(|at| at <= scene.steps) {
            scene.killed = true;
            drop(scene);
            self.0.fault(Fault::KilledAtStep);
            return Pace::Stop;
        }
        drop(scene);
        if self.0.chance.percent(30) { Pace::Yield } else { Pace::GoOn }
    }

    fn killed(&self) -> bool {
        self.0.scene().killed
    }

    fn broken(&self, defect: Defect) -> bool {
        self.0.defect == Some(defect)
    }
}
