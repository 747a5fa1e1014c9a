//! Finds the requested functions and USDT probes in one file.

use std::collections::HashSet;
use std::fs::File;
use std::io;

use super::elf::{Opened, Program, entry};
use super::is_there;
use super::notes::Usdt;
use super::symbols::Symbol;
use crate::probes::{Argument, Names, Near, ProbeSpec, What, fits, near, parse};

/// Maximum number of functions or probes that a pattern may match.
pub(crate) const SPOTS_MAX: usize = 256;

/// An address to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Number of the request.
    pub(crate) number: usize,
    /// Name in the file.
    pub(crate) name: String,
    /// File offset.
    pub(crate) offset: u64,
    /// For a USDT probe.
    pub(crate) usdt: Option<UsdtSpot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsdtSpot {
    pub(crate) provider: String,
    /// File offset of the semaphore that counts its users; 0 if there is none.
    pub(crate) semaphore: u64,
    pub(crate) args: Vec<Argument>,
}

/// Why a requested probe is not in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// Similar names.
    Near(Vec<String>),
    /// An indirect function (IFUNC), resolved at program start.
    Choice(String),
    /// More matches than [`SPOTS_MAX`].
    TooMany(usize),
    /// Written in Go.
    MovesStacks,
    /// Not a program of this architecture.
    Foreign,
}

type Spots = (Vec<Spot>, Vec<(usize, Lacking)>);

/// Finds the requests with these numbers.
pub(super) fn spots(file: &File, specs: &[ProbeSpec], numbers: &[usize]) -> io::Result<Spots> {
    if numbers.is_empty() {
        return Ok(Spots::default());
    }
    let all = |lacking: &Lacking| {
        let lacking = numbers.iter().map(|number| (*number, lacking.clone()));
        Ok((Vec::new(), lacking.collect()))
    };
    let program = match Opened::of(file)? {
        Opened::Program(program) => program,
        Opened::Narrow | Opened::Foreign => return all(&Lacking::Foreign),
    };
    let mut found = Search {
        first: entry(file)?,
        specs,
        numbers,
        taken: HashSet::new(),
        spots: vec![Vec::new(); numbers.len()],
        counts: vec![0; numbers.len()],
        choices: vec![None; numbers.len()],
    };
    let is_function = |number: &usize| matches!(specs[*number].what, What::Function { .. });
    let moves_stacks = program.moves_stacks()?;
    if numbers.iter().any(is_function) && !moves_stacks {
        program.each_function(&mut |symbol| found.see(symbol))?;
    }
    if !numbers.iter().all(is_function) {
        program.each_usdt(&mut |usdt| found.see_usdt(usdt))?;
    }
    found.end(&program, moves_stacks)
}

struct Search<'s> {
    /// The entry point: not a function, as nothing calls it. In place of a return address are the
    /// program's arguments, which a return probe would overwrite.
    first: Option<u64>,
    specs: &'s [ProbeSpec],
    numbers: &'s [usize],
    /// Already found: aliases count once.
    taken: HashSet<(usize, u64)>,
    spots: Vec<Vec<Spot>>,
    counts: Vec<usize>,
    choices: Vec<Option<String>>,
}

impl Search<'_> {
    fn see(&mut self, symbol: Symbol<'_>) {
        let names = Names::of(symbol.name);
        for place in 0..self.numbers.len() {
            let What::Function { symbol: wanted, .. } = &self.specs[self.numbers[place]].what
            else {
                continue;
            };
            if !names.fit(wanted) || Some(symbol.offset) == self.first {
                continue;
            }
            if symbol.is_choice {
                self.choices[place] = Some(names.shown().to_owned());
            } else {
                self.take(place, (names.shown(), symbol.offset), None);
            }
        }
    }

    fn see_usdt(&mut self, usdt: Usdt<'_>) {
        for place in 0..self.numbers.len() {
            if let What::Usdt { provider, name, .. } = &self.specs[self.numbers[place]].what
                && fits(provider, usdt.provider)
                && fits(name, usdt.name)
            {
                let about = UsdtSpot {
                    provider: usdt.provider.to_owned(),
                    semaphore: usdt.semaphore,
                    args: parse(usdt.args),
                };
                self.take(place, (usdt.name, usdt.offset), Some(about));
            }
        }
    }

    fn take(&mut self, place: usize, (name, offset): (&str, u64), usdt: Option<UsdtSpot>) {
        if !self.taken.insert((place, offset)) {
            return;
        }
        self.counts[place] += 1;
        if self.spots[place].len() < SPOTS_MAX {
            self.spots[place].push(Spot {
                number: self.numbers[place],
                name: name.to_owned(),
                offset,
                usdt,
            });
        }
    }

    fn end(self, program: &Program<'_>, moves_stacks: bool) -> io::Result<Spots> {
        let (mut spots, mut lacking) = Spots::default();
        for (place, of_one) in self.spots.into_iter().enumerate() {
            let number = self.numbers[place];
            let count = self.counts[place];
            let spec = &self.specs[number];
            let is_function = matches!(spec.what, What::Function { .. });
            let why_not = match &self.choices[place] {
                _ if is_function && moves_stacks => Some(Lacking::MovesStacks),
                // An older version of it may be there too, which is not the one meant.
                Some(choice) if count == 0 || !spec.is_pattern() => {
                    Some(Lacking::Choice(choice.clone()))
                }
                _ if count > SPOTS_MAX => Some(Lacking::TooMany(count)),
                _ if count == 0 => Some(Lacking::Near(near_names(program, spec)?)),
                _ => None,
            };
            if let Some(why_not) = why_not {
                lacking.push((number, why_not));
                continue;
            }
            let can_be_read = |spot: &Spot| is_there(program.file, spot.offset);
            spots.extend(of_one.into_iter().filter(can_be_read));
        }
        Ok((spots, lacking))
    }
}

fn near_names(program: &Program<'_>, spec: &ProbeSpec) -> io::Result<Vec<String>> {
    let mut near: Near = near(&spec.name());
    match spec.what {
        What::Function { .. } => {
            program.each_function(&mut |symbol| near.see(Names::of(symbol.name).short()))?;
        }
        What::Usdt { .. } => program.each_usdt(&mut |usdt| {
            near.see(&format!("{}:{}", usdt.provider, usdt.name));
        })?,
    }
    Ok(near.names())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_own_program(texts: &[&str]) -> Spots {
        let file = File::open("/proc/self/exe").expect("it runs");
        let specs: Vec<ProbeSpec> = texts
            .iter()
            .map(|text| ProbeSpec::function(text).expect(text))
            .collect();
        let numbers: Vec<usize> = (0..specs.len()).collect();
        spots(&file, &specs, &numbers).expect("it can be read")
    }

    /// Has a unique name.
    #[inline(never)]
    fn a_spot_to_be_found(number: u64) -> u64 {
        std::hint::black_box(number) * 3
    }

    #[test]
    fn where_a_program_begins_is_no_function() {
        let file = File::open("/proc/self/exe").expect("it runs");
        let first = entry(&file).expect("it can be read");
        assert!(first.is_some());
        let (found, lacking) = of_own_program(&["x:_start", "x:_star*"]);
        assert!(
            found.iter().all(|spot| Some(spot.offset) != first),
            "{found:?}"
        );
        assert!(matches!(lacking[0], (0, Lacking::Near(_))), "{lacking:?}");
    }

    #[test]
    fn functions_of_this_program_are_found_by_name_and_pattern() {
        assert_eq!(a_spot_to_be_found(1), 3);
        let (found, lacking) = of_own_program(&["x:*::a_spot_to_be_found", "x:*spot_to_be_foun?"]);
        assert_eq!(lacking, []);
        let [spot, again] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(spot.name.ends_with("tests::a_spot_to_be_found"), "{spot:?}");
        assert_eq!((spot.number, again.number), (0, 1));
        assert_eq!(spot.offset, again.offset);
    }

    #[test]
    fn what_is_not_there_has_names_that_are_near_and_too_many_are_refused() {
        let (found, lacking) = of_own_program(&["x:a_spot_to_be_fuond", "x:*"]);
        assert_eq!(found, []);
        let [(0, Lacking::Near(names)), (1, Lacking::TooMany(count))] = lacking.as_slice() else {
            panic!("{lacking:?}");
        };
        assert!(*count > SPOTS_MAX);
        let _ = names;
    }

    #[test]
    fn other_files_have_no_functions() {
        let specs = [ProbeSpec::function("x:main").expect("it is right")];
        let file = tempfile::tempfile().expect("a disk");
        let found = spots(&file, &specs, &[0]).expect("it can be read");
        assert_eq!(found, (Vec::new(), vec![(0, Lacking::Foreign)]));
    }
}
