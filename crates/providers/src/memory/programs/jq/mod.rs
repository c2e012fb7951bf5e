//! `jq`, over the library jaq with values and words of its own.

mod alternatives;
mod code;
mod data;
mod filter;
mod functions;
mod inputs;
mod library;
mod meter;
mod ops;
mod options;
mod read;
mod regex;
mod stream;
mod syntax;
mod value;
mod write;

use std::cell::RefCell;
use std::collections::BTreeMap;

use async_trait::async_trait;
use jaq_core::{Ctx, Exn, Vars};

use super::run::{Ending, ProgramRun, ShellProgram};
use super::worker::{Worker, work};
use data::{Kind, RunData, State};
use filter::compile;
use inputs::{Inputs, Printer, RunInputs};
use meter::Abort;
use options::{JqNamedValue, JqTask, Options, Positional};
use value::{Error, JqText, JqValue, Map};

/// The status of a run whose filter fails.
const FAILURE: i32 = 5;
/// The status of a run whose input is no JSON, or that prints nothing.
const NOTHING: i32 = 4;
const WRONG_FILTER: i32 = 3;
const WRONG_INPUT: i32 = 2;

pub(super) struct Jq;

#[async_trait]
impl ShellProgram for Jq {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = match options::parse(run.args)? {
            JqTask::Print(text) => return run.print(text).await.map(|()| 0),
            JqTask::Run(options) => *options,
        };
        let env: BTreeMap<String, String> =
            run.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        work(run, move |worker| {
            let done = meter::measured(worker.stop_flag(), || evaluate(worker, &options, env));
            done.unwrap_or_else(|abort| {
                if abort != Abort::Ended {
                    worker.print_error(format!("jq: error: {}\n", abort.text()))?;
                }
                Ok(FAILURE)
            })
        })
        .await
    }
}

/// Runs the filter over the inputs.
fn evaluate(worker: &Worker, options: &Options, env: BTreeMap<String, String>) -> Result<i32, Ending> {
    let env = JqValue::object(
        env.into_iter().map(|(name, value)| (JqText::new(name), JqValue::text(value))).collect(),
    );
    let (names, values) = variables(worker, options, &env)?;
    let text = filter_text(worker, options)?;
    let text = syntax::expanded(&text);
    // What is wrong is told of the text as it was given.
    let filter = match compile(&syntax::bounded(&text), &names).or_else(|_| compile(&text, &names)) {
        Ok(filter) => filter,
        Err(wrong) => {
            worker.print_error(wrong)?;
            return Ok(WRONG_FILTER);
        }
    };
    let printer = Printer::new(worker);
    let inputs = RefCell::new(Inputs::new(worker, &printer, options));
    let state = State { printer: &printer, inputs: &inputs, env };
    let mut evaluation =
        Evaluation { options, printer: &printer, inputs: &inputs, status: None, has_halted: false };
    let mut is_first = true;
    let mut wrong_input = None;
    loop {
        let input = if options.no_input {
            Ok(std::mem::take(&mut is_first).then_some(JqValue::Null))
        } else {
            RunInputs::next(&inputs)
        };
        let input = match input {
            Ok(Some(input)) => input,
            Ok(None) => break,
            Err(wrong) => {
                wrong_input = Some(wrong);
                break;
            }
        };
        let context =
            Ctx::<Kind>::new(RunData { lut: &filter.lut, state: &state }, Vars::new(values.clone()));
        evaluation.outputs(filter.id.run((context, input)))?;
        if evaluation.has_halted {
            break;
        }
    }
    let status = evaluation.end(wrong_input)?;
    printer.flush()?;
    Ok(status)
}

fn filter_text(worker: &Worker, options: &Options) -> Result<String, Ending> {
    let text = options.filter.clone().unwrap_or_default();
    if !options.filter_is_file {
        return Ok(text);
    }
    let could_not =
        |reason: &str| Ending::with_status(format!("Could not open {text}: {reason}"), WRONG_INPUT);
    let content = worker.read(&text)?.map_err(|error| could_not(error.reason()))?;
    let bytes = content.to_vec(16 << 20).ok_or_else(|| could_not("File too large"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The names and values of the variables that the command line gives.
fn variables(
    worker: &Worker,
    options: &Options,
    env: &JqValue,
) -> Result<(Vec<String>, Vec<JqValue>), Ending> {
    let mut named = Map::default();
    for (name, argument) in &options.named {
        named.insert(JqText::new(name.as_str()), named_value(worker, name, argument)?);
    }
    let positional = options.positional.iter().map(|argument| match argument {
        Positional::JqText(text) => Ok(JqValue::text(text.as_str())),
        Positional::Json(text) => json(text).ok_or_else(|| refused_argument("--jsonargs")),
    });
    let positional = positional.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> = named.keys().map(|name| format!("${}", &**name)).collect();
    let mut values: Vec<JqValue> = named.values().cloned().collect();
    names.extend(["$ENV", "$ARGS"].map(str::to_owned));
    let all =
        JqValue::fields([("positional", JqValue::array(positional)), ("named", JqValue::object(named))]);
    values.extend([env.clone(), all]);
    Ok((names, values))
}

fn json(text: &str) -> Option<JqValue> {
    read::one(text).ok().flatten()
}

fn refused_argument(option: &str) -> Ending {
    Ending::with_status(
        format!(
            "invalid JSON text passed to {option}\nUse jq --help for help with command-line options,\n\
             or see the jq manpage, or online docs  at https://jqlang.github.io/jq"
        ),
        WRONG_INPUT,
    )
}

fn named_value(worker: &Worker, name: &str, argument: &JqNamedValue) -> Result<JqValue, Ending> {
    let (option, file) = match argument {
        JqNamedValue::JqText(text) => return Ok(JqValue::text(text.as_str())),
        JqNamedValue::Json(text) => return json(text).ok_or_else(|| refused_argument("--argjson")),
        JqNamedValue::Values(file) => ("slurpfile", file),
        JqNamedValue::File(file) => ("rawfile", file),
    };
    let bad = |what: String| {
        Ending::with_status(format!("Bad JSON in --{option} {name} {file}: {what}"), WRONG_INPUT)
    };
    let content = worker.read(file)?.map_err(|reason| bad(format!("Could not open {file}: {reason}")))?;
    meter::check(usize::try_from(content.len()).unwrap_or(usize::MAX));
    let bytes = content.to_vec(u64::MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    if option == "rawfile" {
        Ok(JqValue::text(text))
    } else {
        read::many(&text).map(JqValue::array).map_err(bad)
    }
}

/// One way through the inputs.
struct Evaluation<'a, 'i> {
    options: &'a Options,
    printer: &'a Printer<'a>,
    inputs: &'a RefCell<Inputs<'i>>,
    /// The status of the last input that had one.
    status: Option<i32>,
    has_halted: bool,
}

impl Evaluation<'_, '_> {
    /// Prints what comes of one input.
    fn outputs<'a>(
        &mut self,
        outputs: impl Iterator<Item = Result<JqValue, Exn<'a, JqValue>>>,
    ) -> Result<(), Ending> {
        if !self.options.sets_status {
            self.status = Some(0);
        }
        for output in outputs {
            meter::restart_steps();
            let failed = match output {
                Ok(value) => {
                    if self.options.sets_status {
                        self.status = Some(i32::from(!value.is_true()));
                    }
                    match self.printed(&value) {
                        Ok(text) => {
                            self.printer.print(text.as_bytes())?;
                            continue;
                        }
                        Err(wrong) => Some(wrong),
                    }
                }
                Err(exception) => match exception.get_err() {
                    Ok(wrong) => Some(wrong),
                    Err(exception) => {
                        self.has_halted = true;
                        self.status = Some(exception.get_halt().unwrap_or(FAILURE));
                        None
                    }
                },
            };
            if let Some(wrong) = failed {
                self.fail(wrong)?;
            }
            break;
        }
        Ok(())
    }

    fn printed(&self, value: &JqValue) -> Result<String, Error> {
        let options = self.options;
        let mut text = match value {
            JqValue::JqText(text) if options.raw && !options.style.ascii => text.to_string(),
            value => write::text(value, &options.style),
        };
        if options.ends_with_zero && text.contains('\0') {
            return Err(ops::error("Cannot dump a string containing NUL with --raw-output0 option"));
        }
        if options.marks_records {
            text.insert(0, '\x1e');
        }
        if options.ends_with_zero {
            text.push('\0');
        } else if !options.joins {
            text.push('\n');
        }
        Ok(text)
    }

    fn fail(&mut self, wrong: Error) -> Result<(), Ending> {
        self.status = Some(FAILURE);
        let at = self.inputs.borrow().location();
        let text = match wrong.into_val() {
            JqValue::JqText(text) => format!("jq: error (at {at}): {}\n", &*text),
            other => format!("jq: error (at {at}) (not a string): {other}\n"),
        };
        self.printer.print_error(&text)
    }

    fn end(self, wrong_input: Option<String>) -> Result<i32, Ending> {
        if let Some(wrong) = &wrong_input {
            self.printer.print_error(&format!("parse error: {wrong}\n"))?;
        }
        if self.has_halted {
            return Ok(self.status.unwrap_or(0));
        }
        if self.inputs.borrow().has_failed {
            return Ok(WRONG_INPUT);
        }
        if wrong_input.is_some() {
            return Ok(NOTHING);
        }
        Ok(self.status.unwrap_or(if self.options.sets_status { NOTHING } else { 0 }))
    }
}
