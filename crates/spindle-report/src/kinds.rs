//! Kinds of transactions apart (new order, payment, ...): for each workload and load level the layouts of each kind
//! together, for both reports.

use super::comparison::milliseconds;
use spindle_result::{Case, Deferred, KindMeans};
use spindle_text::quantity::thousands;

/// The columns of the table: the kind, the layout, and the figures.
pub(super) const COLUMNS: [&str; 6] =
    ["kind", "layout", "per minute", "p50 ms", "p95 ms", "p99 ms"];

/// One kind of transaction.
pub(super) struct TransactionKind {
    /// Its name.
    pub(super) kind: String,
    /// The layouts that had it, each with its figures.
    pub(super) layouts: Vec<(String, [String; 4])>,
}

/// The kinds of the cases of one workload and load level, in the workload's order; none where there is one kind only.
pub(super) fn kinds_of(cases: &[&Case]) -> Vec<TransactionKind> {
    let mut kinds: Vec<TransactionKind> = Vec::new();
    for case in cases {
        for means in case.kinds() {
            let figures = (case.id.layout.clone(), figures(&means));
            match kinds.iter_mut().find(|kind| kind.kind == means.kind) {
                Some(kind) => kind.layouts.push(figures),
                None => kinds.push(TransactionKind {
                    kind: means.kind,
                    layouts: vec![figures],
                }),
            }
        }
    }
    kinds
}

/// How late those ended that clients put off, in a sentence for each layout.
pub(super) fn deferred(cases: &[&Case]) -> Vec<String> {
    let of = |case: &&Case| {
        let trials: Vec<Deferred> = case.trials.iter().filter_map(|it| it.deferred).collect();
        let mean = |figure: fn(&Deferred) -> f64| {
            trials.iter().map(figure).sum::<f64>() / trials.len() as f64
        };
        (!trials.is_empty()).then(|| {
            format!(
                "{}: deferred transactions ended {} ms after they were queued (p50), {} ms (p99); {} waited at the end.",
                case.id.layout,
                milliseconds(mean(|it| it.completed_us.p50) / 1e3),
                milliseconds(mean(|it| it.completed_us.p99) / 1e3),
                thousands(mean(|it| it.waiting as f64)),
            )
        })
    };
    cases.iter().filter_map(of).collect()
}

fn figures(means: &KindMeans) -> [String; 4] {
    let ms = |us: f64| milliseconds(us / 1e3);
    [
        thousands(means.per_minute),
        ms(means.p50_us),
        ms(means.p95_us),
        ms(means.p99_us),
    ]
}
