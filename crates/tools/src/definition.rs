//! One tool: what a model is told of it, and what answers its calls.

use std::fmt;
use std::sync::Arc;

use eyot::{Error, Result};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ToolContext;
use super::output::ToolOutput;
use super::{arguments, schema};

/// The longest name of a tool, in bytes; what every model's API takes.
pub const MAX_TOOL_NAME_BYTES: usize = 64;

/// The effect of a call on what is there, where that can be promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing is changed.
    Reads,
    /// Nothing that is there is changed or lost, and the same call again changes nothing more.
    Adds,
}

type ToolRun = Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

/// One tool: name, description, the schema of its arguments, and its run.
///
/// ```
/// use eyot_tools::{ToolDef, ToolOutput, Toolset};
///
/// /// Where the weather is asked for. (The fields' comments are what the model reads.)
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Weather {
///     /// A city's name
///     city: String,
///     /// How many days ahead
///     #[serde(default)]
///     days: u64,
/// }
///
/// let weather = ToolDef::typed("weather", "Say what the weather will be.", async |_context, asked: Weather| {
///     Ok(ToolOutput::text(format!("in {} days it rains in {}", asked.days, asked.city)))
/// })?;
/// let tools = Toolset::new("mine", [weather])?;
/// assert!(tools.get("weather").is_some());
/// # Ok::<(), eyot::Error>(())
/// ```
#[derive(Clone)]
pub struct ToolDef {
    name: String,
    description: String,
    /// The schema that a model is shown.
    input_schema: Value,
    /// The schema that arguments are held against.
    checked: Value,
    output_schema: Option<Value>,
    anthropic_type: Option<String>,
    pub(super) effect: Option<Effect>,
    pub(super) settles_cancel: bool,
    run: ToolRun,
}

impl ToolDef {
    /// A tool whose arguments are a struct: its schema comes from the struct, the fields' doc comments are their
    /// descriptions, and `deny_unknown_fields` refuses names that it does not have. `invalid`: the name is none, or the
    /// struct is no JSON object.
    pub fn typed<Args, F, Fut>(name: &str, description: &str, run: F) -> Result<Self>
    where
        Args: DeserializeOwned + JsonSchema + 'static,
        F: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
    {
        let run = move |context: ToolContext, input: Value| -> BoxFuture<'static, Result<ToolOutput>> {
            match serde_json::from_value(input) {
                Ok(args) => Box::pin(run(context, args)),
                Err(error) => Box::pin(std::future::ready(Err(Error::invalid("arguments", error)))),
            }
        };
        Self::make(name, description, schema::of::<Args>(), Arc::new(run))
    }

    /// A tool whose arguments are held against this JSON Schema and handed over as they are. Checked are `type`, `enum`,
    /// `const`, `properties`, `required`, `additionalProperties`, `items`, `anyOf`, `oneOf` and the limits of numbers,
    /// strings and arrays; what else a schema says is the run's to check. `invalid`: the name is none, or the schema's
    /// `type` is not `object`.
    pub fn new<F, Fut>(name: &str, description: &str, input_schema: Value, run: F) -> Result<Self>
    where
        F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
    {
        let run = move |context: ToolContext, input: Value| -> BoxFuture<'static, Result<ToolOutput>> {
            Box::pin(run(context, input))
        };
        Self::make(name, description, input_schema, Arc::new(run))
    }

    fn make(name: &str, description: &str, schema: Value, run: ToolRun) -> Result<Self> {
        check_name(name)?;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(Error::invalid("schema", format!("of tool `{name}` must have the type `object`")));
        }
        Ok(Self {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema.clone(),
            checked: schema,
            output_schema: None,
            anthropic_type: None,
            effect: None,
            settles_cancel: false,
            run,
        })
    }

    /// The same tool, telling MCP clients the shape of its structured answers.
    #[must_use]
    pub fn returns<Answer: JsonSchema>(mut self) -> Self {
        self.output_schema = Some(schema::of_answer::<Answer>());
        self
    }

    /// The same tool, showing a model plain `number`s where integers are meant. What is no integer is still refused.
    #[must_use]
    pub fn with_plain_numbers(mut self) -> Self {
        schema::plain_numbers(&mut self.input_schema);
        self
    }

    /// The same tool as one of those that Anthropic's API knows by a type of its own, such as `bash_20250124`: there it
    /// is declared by type and name alone.
    #[must_use]
    pub fn with_anthropic_type(mut self, anthropic_type: &str) -> Self {
        self.anthropic_type = Some(anthropic_type.to_owned());
        self
    }

    /// The same tool, promising that it changes no file and no process and reaches nothing outside of the sandboxes: MCP
    /// clients may then call it without asking anybody.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { effect: Some(Effect::Reads), ..self }
    }

    /// The same tool, promising that it only adds to what is there, once for the same arguments, and reaches nothing
    /// outside of the sandboxes.
    #[must_use]
    pub fn additive(self) -> Self {
        Self { effect: Some(Effect::Adds), ..self }
    }

    /// The same tool, which looks at [`ToolContext::cancel`] itself and still has something to say then. Others are
    /// dropped where they are when their call is cancelled.
    #[must_use]
    pub fn handling_cancel(mut self) -> Self {
        self.settles_cancel = true;
        self
    }

    /// The same tool as a model is shown it, answered by this instead: by a server that has the tool, say. Its arguments are
    /// checked before, and it is dropped where it is when its call is cancelled.
    #[must_use]
    pub fn with_handler<F, Fut>(self, run: F) -> Self
    where
        F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
    {
        let run = move |context: ToolContext, input: Value| -> BoxFuture<'static, Result<ToolOutput>> {
            Box::pin(run(context, input))
        };
        Self { run: Arc::new(run), settles_cancel: false, ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description that a model is shown.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of its arguments, as a model is shown it.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// The schema of its structured answers, where it declares one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref()
    }

    /// The type in Anthropic's API, where it has one of its own.
    pub fn anthropic_type(&self) -> Option<&str> {
        self.anthropic_type.as_deref()
    }

    /// The arguments as the run takes them, or everything that is wrong with them.
    pub(super) fn check(&self, input: Value) -> Result<Value, String> {
        arguments::check(&self.checked, input)
    }

    /// Runs it with arguments that were checked.
    pub(super) fn run(&self, context: ToolContext, input: Value) -> BoxFuture<'static, Result<ToolOutput>> {
        (self.run)(context, input)
    }
}

fn check_name(name: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.len() <= MAX_TOOL_NAME_BYTES && name.bytes().all(good) {
        Ok(())
    } else {
        let rule = format!("must be 1 to {MAX_TOOL_NAME_BYTES} letters, digits, `_` or `-`");
        Err(Error::invalid("name", format!("of a tool {rule}; got `{name}`")))
    }
}

impl fmt::Debug for ToolDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDef").field("name", &self.name).finish_non_exhaustive()
    }
}
