//! The tables in `data/`.

use serde::Deserialize;

use crate::ReportError;

const FIGURES: &str = include_str!("../../data/lab-seed-figures.csv");
const ERRATA: &str = include_str!("../../data/lab-seed-figures-errata.csv");

/// One published figure. Fields are as printed; what the source does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Figure {
    /// Which source: see `data/README.md`.
    pub seed: String,
    /// Its table.
    pub table: String,
    /// The device.
    pub dut: String,
    /// Machine, cards, versions.
    pub config: String,
    /// Processors or workers.
    pub cores: String,
    /// Their clock.
    pub clock_ghz: String,
    /// What it did.
    pub scenario: String,
    /// With FCS, or `imix`.
    pub frame_bytes: String,
    /// `bi`, `uni`.
    pub direction: String,
    /// What was measured.
    pub metric: String,
    /// The figure.
    pub value: String,
    /// Its unit and counting: `fps/dir`, `Mpps total`.
    pub unit: String,
}

/// What is odd about a published figure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Erratum {
    /// Which source.
    pub seed: String,
    /// Its tables: one, a list, or a range.
    pub table: String,
    /// The place in it.
    #[serde(rename = "where")]
    pub place: String,
    /// What is printed.
    pub as_printed: String,
    /// What is used here.
    pub used: String,
    /// Why.
    pub reason: String,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// The figures.
    pub figures: Vec<Figure>,
    /// What is odd about some.
    pub errata: Vec<Erratum>,
}

impl Published {
    /// Those that are built in.
    ///
    /// # Errors
    ///
    /// If a row is not as it should be; a test sees to it that none is.
    pub fn built_in() -> Result<Self, ReportError> {
        Self::parse(FIGURES, ERRATA)
    }

    /// Of the text of both tables.
    ///
    /// # Errors
    ///
    /// If a row has too few columns.
    pub fn parse(figures: &str, errata: &str) -> Result<Self, ReportError> {
        Ok(Published { figures: rows("lab-seed-figures.csv", figures)?, errata: rows("errata", errata)? })
    }

    /// What is odd about `figure`.
    pub fn errata_of(&self, figure: &Figure) -> Vec<&Erratum> {
        self.errata.iter().filter(|e| e.concerns(figure)).collect()
    }
}

fn rows<T: for<'a> Deserialize<'a>>(file: &'static str, text: &str) -> Result<Vec<T>, ReportError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let row = |(at, row): (usize, csv::Result<T>)| {
        row.map_err(|e| ReportError::Figures { file, row: at + 1, reason: e.to_string() })
    };
    reader.deserialize().enumerate().map(row).collect()
}

impl Erratum {
    /// Whether it is about this figure: same source and table, and, if it names a number of cores or a kind of figure,
    /// the same of these.
    fn concerns(&self, figure: &Figure) -> bool {
        if self.seed != figure.seed || !self.names_table(&figure.table) {
            return false;
        }
        let place = self.place.to_lowercase();
        let cores = place.split_once(" core").and_then(|(before, _)| before.rsplit([' ', ',']).next());
        if cores.is_some_and(|c| c.parse::<u32>().is_ok() && c != figure.cores) {
            return false;
        }
        let kinds = [("standard deviation", "stdev"), ("dispersion", "dispersion"), ("minimum", "min")];
        let kind = kinds.iter().find(|(word, _)| place.contains(word));
        kind.is_none_or(|(_, metric)| {
            figure.metric.contains(metric) || !figure.metric.starts_with("throughput_")
        })
    }

    /// `2.8 / 2.9`, `III, IV`, `2.11-2.14`, or a table's name.
    fn names_table(&self, table: &str) -> bool {
        if self.table == table {
            return true;
        }
        self.table.split([',', '/']).map(str::trim).any(|part| {
            let Some((from, to)) = part.split_once('-') else { return part == table };
            let number = |t: &str| t.strip_prefix("2.").and_then(|n| n.parse::<u32>().ok());
            match (number(from), number(to), number(table)) {
                (Some(from), Some(to), Some(of)) => (from..=to).contains(&of),
                _ => false,
            }
        })
    }
}

impl Figure {
    /// Its value, if it is a number.
    pub fn number(&self) -> Option<f64> {
        self.value.parse().ok()
    }

    /// Frames a second and direction, if it is a rate of frames and the unit tells how it is counted.
    pub fn per_direction(&self) -> Option<f64> {
        let value = self.number()?;
        match self.unit.as_str() {
            "fps/dir" => Some(value),
            "Mpps total" if self.direction == "bi" => Some(value * 1e6 / 2.0),
            "Mpps/dir" | "Mpps total" => Some(value * 1e6),
            _ => None,
        }
    }

    /// As [`per_direction`](Self::per_direction), of one core at 1 GHz: all that may be set beside another machine's.
    pub fn per_ghz_and_core(&self) -> Option<f64> {
        let cores: f64 = self.cores.parse().ok()?;
        let clock: f64 = self.clock_ghz.parse().ok()?;
        (cores > 0.0 && clock > 0.0).then_some(())?;
        self.per_direction().map(|fps| fps / cores / clock)
    }
}
