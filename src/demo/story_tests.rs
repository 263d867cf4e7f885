//! The story told in any order: by the driver, which shows the script what the runtime would.

use super::tests::cargo_test;
use super::tests::driver::{Mail, Story, TESTS_FAIL};
use super::*;

fn told(seed: u64) -> Story {
    let mut story = Story::new(seed);
    story.line(DEMO_REQUEST);
    story.run();
    assert!(story.said()[0].contains("三个方向"), "{:?}", story.said());
    story.line(DEMO_CONFIRMATION);
    story
}

#[test]
fn every_order_of_events_ends_with_the_summary() {
    for seed in 0..60 {
        let mut story = told(seed);
        story.run();
        let said = story.said();
        assert!(said.last().unwrap().contains("【总结】重构完成"), "seed {seed}: {said:?}");
        assert_eq!(said.iter().filter(|text| text.contains("【总结】")).count(), 1, "seed {seed}");
        assert!(story.team_has_ended(), "seed {seed}");
        assert_eq!(story.clerk.unmatched(), Vec::<String>::new(), "seed {seed}");
        for (at, path) in [(0, "src/config.rs"), (1, "src/auth.rs"), (2, "tests/regression.rs")] {
            assert_eq!(story.file(path), EDITS[at].1, "seed {seed}");
        }
        assert!(story.file("tests/basic.rs").contains("fn a_line_without_equals_is_refused()"));
        let plans = story.agents["auth"]
            .history
            .iter()
            .filter(|message| message["content"].as_str().is_some_and(|text| text.starts_with("[Plan ")));
        assert_eq!(plans.count(), 2, "seed {seed}: one plan rejected, one approved");
    }
}

#[test]
fn the_story_with_real_tests_at_its_end() {
    let mut story = told(7);
    story.bash = |story| {
        let (ok, text) = cargo_test(story.folder.path());
        format!("{text}exit code: {}", i32::from(!ok))
    };
    story.run();
    assert!(story.said().last().unwrap().contains("【总结】重构完成"), "{:?}", story.said());
    let (ok, text) = cargo_test(story.folder.path());
    assert!(ok && text.contains("10 passed"), "{text}");
}

#[test]
fn tests_that_fail_are_not_called_passing() {
    for seed in 0..20 {
        let mut story = told(seed);
        story.bash = |_| TESTS_FAIL.to_owned();
        story.run();
        let said = story.said();
        assert!(said.last().unwrap().contains("没有通过"), "seed {seed}: {said:?}");
        assert!(!said.iter().any(|text| text.contains("重构完成")), "seed {seed}: {said:?}");
        assert!(story.team_has_ended());
    }
}

#[test]
fn a_teammate_that_fails_is_named_and_the_rest_ends_well() {
    for seed in 0..20 {
        let mut story = told(seed);
        story.failing = Some("config");
        story.run();
        let said = story.said();
        assert!(said.last().unwrap().contains("并非全部完成"), "seed {seed}: {said:?}");
        assert!(story.team_has_ended());
    }
}

#[test]
fn a_member_that_the_user_dropped_is_not_waited_for() {
    for seed in 0..20 {
        let mut story = told(seed);
        story.confirmed = vec!["config", "auth"];
        story.run();
        assert!(story.said().last().unwrap().contains("【总结】你确认的队友"), "{:?}", story.said());
        assert!(story.team_has_ended());
    }
}

#[test]
fn a_gate_that_the_user_closed_is_kept_by_all() {
    for seed in 0..20 {
        let mut story = told(seed);
        story.plan_for_all = true;
        story.run();
        assert!(story.said().last().unwrap().contains("【总结】重构完成"), "{:?}", story.said());
    }
}

#[test]
fn a_no_starts_nothing_and_can_be_taken_back() {
    let mut story = Story::new(1);
    story.line(DEMO_REQUEST);
    story.run();
    story.line("不");
    story.run();
    assert!(story.said().last().unwrap().contains("什么都没有启动"));
    assert_eq!(story.agents.len(), 1);
    story.line("那还是重构吧");
    story.run();
    story.line("yes");
    story.run();
    assert!(story.said().last().unwrap().contains("【总结】重构完成"), "{:?}", story.said());
}

#[test]
fn nobody_confirmed_means_nobody_is_said_to_work() {
    let mut story = told(3);
    story.confirmed = Vec::new();
    story.run();
    assert!(story.said().last().unwrap().contains("没有启动任何队友"), "{:?}", story.said());
}

#[test]
fn unknown_lines_get_an_honest_answer_at_any_time() {
    for seed in 0..30 {
        let mut story = told(seed);
        let words = "今天天气怎么样？";
        story.agent("lead").under_way.push(Mail { text: format!("line:{words}"), wakes: true });
        story.run();
        let said = story.said();
        assert!(said.iter().any(|text| text.contains("这是演示")), "seed {seed}: {said:?}");
        let lead = &story.agents["lead"].history;
        assert!(lead.iter().any(|message| {
            message["content"].as_str().is_some_and(|text| text.contains("【总结】重构完成"))
        }));
        assert!(story.team_has_ended());
    }
    let mut story = Story::new(0);
    story.line("hello");
    story.run();
    assert!(story.said()[0].contains("This is the demo"), "{:?}", story.said());
}

#[test]
fn the_story_can_be_told_twice_and_in_english() {
    for seed in 0..20 {
        let mut story = Story::new(seed);
        for _ in 0..2 {
            story.line("Please refactor the sample backend.");
            story.run();
            story.line("ok");
            story.run();
            assert!(story.said().last().unwrap().contains("[Summary]"), "seed {seed}: {:?}", story.said());
            assert!(story.team_has_ended());
        }
        let summaries = story.said().iter().filter(|text| text.contains("The refactoring is done")).count();
        assert_eq!(summaries, 2, "seed {seed}: {:?}", story.said());
    }
}
