//! The simulated user: types at odd times, sometimes what is asked for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use crate::event::Status;
use crate::session::UserInput;

use super::faults::Fault;
use super::log::Seen;
use super::models::NAMES;
use super::stage::Stage;

/// Types until the lines of this life are used up; afterwards only answers what is asked.
pub(super) async fn types(stage: Arc<Stage>, to_session: UnboundedSender<UserInput>) {
    // Always something first: a resumed session waits for it.
    sleep(stage.chance.millis(0, 20_000)).await;
    say(&stage, &to_session, format!("go on {}", stage.word("user")));
    loop {
        let pause =
            if stage.chance.percent(30) { stage.chance.millis(5, 400) } else { stage.chance.millis(400, 45_000) };
        sleep(pause).await;
        if stage.scene().lines_left > 0 {
            stage.scene().lines_left -= 1;
            acts(&stage, &to_session);
        } else if stage.scene().screen.question {
            let answer = if stage.chance.percent(60) { "yes" } else { "no" };
            say(&stage, &to_session, answer.to_owned());
        } else if stage.scene().screen.members.values().any(|status| *status == Status::Paused) {
            say(&stage, &to_session, "/unpause all".to_owned());
        } else {
            sleep(Duration::from_secs(20)).await;
        }
    }
}

fn acts(stage: &Stage, to_session: &UnboundedSender<UserInput>) {
    let screen = stage.scene().screen.clone();
    if screen.question && stage.chance.percent(70) {
        let answer = *stage.chance.pick(&["yes", "yes", "no", "hm?"]);
        return say(stage, to_session, answer.to_owned());
    }
    if !screen.proposed.is_empty() && stage.chance.percent(60) {
        let name = stage.chance.pick(&screen.proposed).clone();
        let text = match stage.chance.below(12) {
            0 => "no".to_owned(),
            1 => format!("/team drop {name}"),
            2 => format!("/team plan {name} on"),
            3 => format!("what about {}", stage.word("user")),
            _ => "yes".to_owned(),
        };
        return say(stage, to_session, text);
    }
    let name = (*stage.chance.pick(&NAMES)).to_owned();
    let plan = screen.plans.iter().next().map(ToString::to_string);
    let choice = stage.chance.below(100);
    let text = match choice {
        0..45 => format!("and {}", stage.word("user")),
        45..53 => "/team".to_owned(),
        53..57 => "/nonsense".to_owned(),
        57..60 => format!("/stop {name}"),
        60..62 => format!("/stop {name} {}", stage.chance.pick(&["ask", "cancel"])),
        62..65 => format!("/{} {name}", stage.chance.pick(&["pause", "unpause"])),
        65..75 => match (plan, choice % 2) {
            (Some(plan), 0) => format!("/approve {plan}"),
            (Some(plan), _) => format!("/reject {plan} because {}", stage.word("user")),
            (None, _) => "/requests".to_owned(),
        },
        75..85 => {
            stage.fault(Fault::StaleYes);
            let seen = screen.seq.saturating_sub(stage.chance.below(30) as u64);
            return input(stage, to_session, "yes".to_owned(), seen);
        }
        85..93 => {
            stage.fault(Fault::Interrupt);
            drop(to_session.send(UserInput::Interrupt));
            return;
        }
        _ => "yes".to_owned(),
    };
    say(stage, to_session, text);
}

/// Types a line, having seen all there is.
pub(super) fn say(stage: &Stage, to_session: &UnboundedSender<UserInput>, text: String) {
    let seen = stage.scene().screen.seq;
    input(stage, to_session, text, seen);
}

fn input(stage: &Stage, to_session: &UnboundedSender<UserInput>, text: String, seen: u64) {
    stage.saw(Seen::Typed { text: text.clone(), seen });
    drop(to_session.send(UserInput::Line { text, seen }));
}
