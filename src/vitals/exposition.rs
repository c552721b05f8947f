//! The text format of Prometheus.

use std::fmt::{Display, Write as _};
use std::time::Duration;

#[derive(Default)]
pub(super) struct MetricsText(pub(super) String);

impl MetricsText {
    /// Adds a metric with one sample.
    pub(super) fn value(&mut self, name: &str, help: &str, value: impl Display) {
        self.samples(name, help, [([], value)]);
    }

    /// Adds a metric with one sample for each value of a label.
    pub(super) fn by<V: Display>(
        &mut self,
        label: &str,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        self.samples(name, help, values.into_iter().map(|(of, value)| ([(label, of)], value)));
    }

    pub(super) fn samples<'l, V: Display, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'l str, &'l str); N], V)>,
    ) {
        self.head(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// Adds the sum and the number of what was observed, for each value of a label.
    pub(super) fn summary(
        &mut self,
        label: &str,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (&'static str, f64, u64)>,
    ) {
        self.head(name, "summary", help);
        for (of, sum, times) in values {
            self.sample(&format!("{name}_sum"), &[(label, of)], sum);
            self.sample(&format!("{name}_count"), &[(label, of)], times);
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let (bucket, mut within) = (format!("{name}_bucket"), 0);
        for (bound, count) in BOUNDS.iter().zip(&histogram.counts) {
            within += count;
            self.sample(&bucket, &[("le", &bound.to_string())], within);
        }
        self.sample(&bucket, &[("le", "+Inf")], histogram.count);
        self.sample(&format!("{name}_sum"), &[], histogram.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], histogram.count);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.line(format_args!("{name}{labels} {value}"));
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{line}");
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
        page.by("of", "a_total", "One \\ two\nlines.", [("a\"b\\c\nd", 3)]);
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
        page.histogram("a_seconds", "A.", &histogram);
        for line in [
            "a_seconds_bucket{le=\"0.005\"} 1\na_seconds_bucket{le=\"0.025\"} 1\na_seconds_bucket{le=\"0.1\"} 2\n",
            "a_seconds_bucket{le=\"1800\"} 2\na_seconds_bucket{le=\"+Inf\"} 3\n",
            "a_seconds_sum 3600.095\na_seconds_count 3\n",
        ] {
            assert!(page.0.contains(line), "{}", page.0);
        }
    }
}
