//! Reading the text of one pod.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{METRICS, Series, escaped};

/// Why the text of a pod is refused as a whole, as a sentence without a full stop: half of it would give wrong sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableMetrics {
    #[error("its answer is not in Prometheus' text format")]
    Malformed,
    #[error("its answer has more than {} series, the limit", PodSamples::MOST)]
    TooMany,
    #[error("its answer has none of the metrics of Kafka")]
    None,
}

/// The rows of [`METRICS`] by the names that are read.
static ROWS: LazyLock<BTreeMap<&'static str, usize>> =
    LazyLock::new(|| METRICS.iter().enumerate().map(|(row, metric)| (metric.reads, row)).collect());

/// A pod's answer with the metrics that are passed on.
#[derive(Debug)]
pub struct PodSamples {
    /// By the row of the metric, then by the labels that are kept.
    series: Vec<Series>,
    len: usize,
}

impl Default for PodSamples {
    fn default() -> PodSamples {
        PodSamples { series: METRICS.iter().map(|_| Series::new()).collect(), len: 0 }
    }
}

impl PodSamples {
    /// The most series of one pod: four for each of 2,500 topics, where a unit is designed for 1,500 partitions.
    pub const MOST: usize = 10_000;

    /// Reads a line, without its line break. Returns whether it added a series.
    ///
    /// # Errors
    /// When the line is about one of the metrics and malformed, or there are too many series.
    pub fn read(&mut self, line: &str) -> Result<bool, UnreadableMetrics> {
        let end = line.find(['{', ' ', '\t']).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let Some(&row) = ROWS.get(name) else { return Ok(false) };
        let (labels, value) = sample(rest, METRICS[row].labels).ok_or(UnreadableMetrics::Malformed)?;
        let series = &mut self.series[row];
        if let Some(sum) = series.get_mut(labels.as_str()) {
            *sum += value;
            return Ok(false);
        }
        if self.len == Self::MOST {
            return Err(UnreadableMetrics::TooMany);
        }
        self.len += 1;
        series.insert(labels.into(), value);
        Ok(true)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// When no line was about any of the metrics.
    pub fn finish(self) -> Result<PodSamples, UnreadableMetrics> {
        if self.len == 0 { Err(UnreadableMetrics::None) } else { Ok(self) }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn of(&self, row: usize) -> &Series {
        &self.series[row]
    }
}

/// Splits `{topic="a",partition="0"} 1.5 1700000000` into the labels to keep, in their order and in the text's form, and
/// the value. `None` if it is malformed.
fn sample(text: &str, keeps: &[&str]) -> Option<(String, f64)> {
    let (mut kept, mut rest) = (vec![None; keeps.len()], text.trim_start());
    if let Some(labels) = rest.strip_prefix('{') {
        rest = labels.trim_start();
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (name, after) = rest.split_once('=')?;
            let (value, after) = quoted(after.trim_start())?;
            if let Some(place) = keeps.iter().position(|keep| *keep == name.trim()) {
                kept[place] = Some(value);
            }
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    let labels = keeps.iter().zip(kept).filter_map(|(name, value)| Some((name, value?)));
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(&value))).collect();
    Some((labels.join(","), value))
}

/// Splits a text in quotation marks from what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let (mut value, mut characters) = (String::new(), text.char_indices());
    loop {
        match characters.next()? {
            (end, '"') => return Some((value, &text[end + 1..])),
            (_, '\\') => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            (_, character) => value.push(character),
        }
    }
}
