//! The text format of Prometheus.

use std::fmt::{Display, Write as _};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

#[derive(Default)]
pub(super) struct MetricsText(pub(super) String);

impl MetricsText {
    /// Begins a metric. All of its samples must follow.
    pub(super) fn metric(&mut self, name: &'static str, kind: MetricKind, help: &str) -> Metric<'_> {
        self.line(format_args!("# HELP {name} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {name} {}", kind.word()));
        Metric { page: self, name }
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{line}");
    }
}

pub(super) struct Metric<'p> {
    page: &'p mut MetricsText,
    name: &'static str,
}

impl Metric<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.suffixed("", labels, value)
    }

    pub(super) fn histogram(&mut self, histogram: &Histogram) {
        let mut within = 0;
        for (bound, count) in BOUNDS.iter().zip(&histogram.counts) {
            within += count;
            self.suffixed("_bucket", &[("le", &bound.to_string())], within);
        }
        self.suffixed("_bucket", &[("le", "+Inf")], histogram.count);
        self.suffixed("_sum", &[], histogram.sum.as_secs_f64());
        self.suffixed("_count", &[], histogram.count);
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let name = self.name;
        self.page.line(format_args!("{name}{suffix}{labels} {value}"));
        self
    }
}

/// Upper bounds of the histogram buckets, in seconds: a round without changes takes milliseconds, a first
/// apply minutes.
const BOUNDS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1800.0];

#[derive(Debug, Default)]
pub(super) struct Histogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl Histogram {
    pub(super) fn observe(&mut self, took: Duration) {
        let bucket = BOUNDS.iter().position(|&bound| took.as_secs_f64() <= bound);
        if let Some(count) = bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            *count += 1;
        }
        self.count += 1;
        self.sum += took;
    }
}

fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_line_or_a_label_is_escaped() {
        let mut page = MetricsText::default();
        page.metric("a_total", MetricKind::Counter, "One \\ two\nlines.").sample(&[("of", "a\"b\\c\nd")], 3);
        let expected = "# HELP a_total One \\\\ two\\nlines.\n# TYPE a_total counter\na_total{of=\"a\\\"b\\\\c\\nd\"} 3\n";
        assert_eq!(page.0, expected);
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let mut histogram = Histogram::default();
        for millis in [5, 90, 3_600_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut page = MetricsText::default();
        page.metric("a_seconds", MetricKind::Histogram, "A.").histogram(&histogram);
        for line in [
            "a_seconds_bucket{le=\"0.005\"} 1\na_seconds_bucket{le=\"0.025\"} 1\na_seconds_bucket{le=\"0.1\"} 2\n",
            "a_seconds_bucket{le=\"1800\"} 2\na_seconds_bucket{le=\"+Inf\"} 3\n",
            "a_seconds_sum 3600.095\na_seconds_count 3\n",
        ] {
            assert!(page.0.contains(line), "{}", page.0);
        }
    }
}
