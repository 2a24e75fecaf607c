//! What interfaces are called: by the command that makes them, and by the lines that give them other names.

use std::collections::BTreeMap;

use shoal_cli::words;
use shoal_module::word;

/// How a line begins that gives a name.
const GIVES: &str = "set interface name ";

/// The names of a configuration's interfaces. One that is called as it was made is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Names {
    /// By the name it was made with: the name it has.
    now: BTreeMap<String, String>,
    /// The other way round.
    made: BTreeMap<String, String>,
}

impl Names {
    /// What lines say, one after the other.
    pub fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Names {
        let mut names = Names::default();
        for line in lines.filter_map(|line| line.strip_prefix(GIVES)) {
            // Names with blanks stand in quotes.
            let words = words(line);
            if let [from, to] = words.as_slice() {
                names.give(from, to);
            }
        }
        names
    }

    fn give(&mut self, from: &str, to: &str) {
        let made = self.made_as(from);
        if let Some(old) = self.now.remove(&made) {
            self.made.remove(&old);
        }
        if made != to {
            self.now.insert(made.clone(), to.to_owned());
            self.made.insert(to.to_owned(), made);
        }
    }

    /// The name that an interface was made with. Sub-interfaces are called after their ports.
    pub fn made_as(&self, name: &str) -> String {
        if let Some(made) = self.made.get(name) {
            return made.clone();
        }
        match name.rsplit_once('.') {
            Some((port, number)) => format!("{}.{number}", self.made_as(port)),
            None => name.to_owned(),
        }
    }

    /// The name that an interface has.
    pub fn name_of(&self, made: &str) -> String {
        if let Some(name) = self.now.get(made) {
            return name.clone();
        }
        match made.rsplit_once('.') {
            Some((port, number)) => format!("{}.{number}", self.name_of(port)),
            None => made.to_owned(),
        }
    }

    /// All interfaces that were given names, by the names they were made with.
    pub fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        self.now.iter().map(|(made, now)| (made.as_str(), now.as_str()))
    }

    /// Gives an interface another name: the commands that do, each with the one that undoes it. What has the name
    /// stands aside until its own turn comes.
    pub fn rename(&mut self, made: &str, to: &str) -> Vec<(String, String)> {
        let from = self.name_of(made);
        if from == to {
            return Vec::new();
        }
        let mut steps = Vec::new();
        if let Some(other) = self.made.get(to).cloned() {
            let aside = format!("{to}-aside");
            steps.push(step(to, &aside));
            self.give(to, &aside);
            debug_assert_eq!(self.name_of(&other), aside);
        }
        steps.push(step(&from, to));
        self.give(&from, to);
        steps
    }
}

fn step(from: &str, to: &str) -> (String, String) {
    let line = |from: &str, to: &str| format!("{GIVES}{} {}", word(from), word(to));
    (line(from, to), line(to, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_followed_through_their_names() {
        let names = Names::of(
            [
                "set interface name loop0 loop0-aside",
                "set interface name loop1 loop0",
                "set interface name loop0-aside \"my loop\"",
                "set interface name \"my loop\".7 customer",
                "set interface state loop0 up",
            ]
            .into_iter(),
        );
        assert_eq!((names.made_as("loop0"), names.made_as("my loop")), ("loop1".into(), "loop0".into()));
        assert_eq!(
            (names.made_as("loop0.5"), names.name_of("loop0.5")),
            ("loop1.5".into(), "my loop.5".into())
        );
        assert_eq!((names.made_as("pg0"), names.name_of("pg0")), ("pg0".into(), "pg0".into()));
    }

    #[test]
    fn what_has_a_name_stands_aside_for_another() {
        let mut names = Names::of(["set interface name loop0 a", "set interface name loop1 b"].into_iter());
        let steps: Vec<String> = [("loop0", "b"), ("loop1", "a")]
            .into_iter()
            .flat_map(|(made, to)| names.rename(made, to))
            .map(|(run, _)| run)
            .collect();
        assert_eq!(
            steps,
            ["set interface name b b-aside", "set interface name a b", "set interface name b-aside a"]
        );
        assert_eq!((names.name_of("loop0"), names.name_of("loop1")), ("b".into(), "a".into()));
        assert!(names.rename("loop0", "b").is_empty());
    }
}
