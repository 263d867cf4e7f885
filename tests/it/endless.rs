//! A command that never stops talking still ends at its time limit.

use crate::harness::{Bench, results};

#[test]
fn i11_endless_output_does_not_outlast_the_time_limit() {
    let scenario = "[fallback]\n\"*\" = \"ok\"\n[[rule]]\nagent = \"lead\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"timeout 30 yes\", timeout = 1 } }]\n";
    let bench = Bench::new(scenario);
    let run = bench.run(&["-p", "go"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = &results(&bench.requests()[1])[0];
    assert!(result.contains("timed out after 1 s"), "{}", &result[result.len() - 300..]);
}
