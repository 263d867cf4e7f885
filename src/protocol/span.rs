//! A length of time as people and models read it: one number, one unit.

/// `45 s`, `12 min`, `3 h`, `5 d`: rounded down, in a unit that leaves at least two of it.
#[must_use]
pub fn in_words(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        172_800.. => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_one_unit_that_fits() {
        let said = [0, 119, 120, 1_800, 7_199, 7_200, 172_799, 172_800, u64::MAX];
        let words = said.map(in_words);
        assert_eq!(words[..8], ["0 s", "119 s", "2 min", "30 min", "119 min", "2 h", "47 h", "2 d"]);
        assert!(words[8].ends_with(" d"), "{words:?}");
    }
}
