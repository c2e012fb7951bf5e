//! The names in an `awk` program, and whether they are variables, arrays or functions.

use std::collections::HashMap;

use super::syntax::{KNOWN_VARIABLES, VariableRef};

/// The use of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    Unknown,
    Value,
    Array,
}

struct KnownFunction {
    name: String,
    is_defined: bool,
    parameters: Vec<(String, NameUse)>,
    line: usize,
}

/// A call, whose arguments are checked once all functions are known.
struct CallSite {
    caller: Option<usize>,
    function: usize,
    /// The arguments that are a single variable.
    args: Vec<Option<VariableRef>>,
    line: usize,
}

/// The names of a program.
pub(super) struct ProgramNames {
    globals: Vec<(String, NameUse)>,
    global_places: HashMap<String, usize>,
    functions: Vec<KnownFunction>,
    function_places: HashMap<String, usize>,
    /// The function whose body is being read.
    current: Option<usize>,
    calls: Vec<CallSite>,
}

impl ProgramNames {
    pub(super) fn new() -> Self {
        let array =
            |name: &str| if matches!(name, "ARGV" | "ENVIRON") { NameUse::Array } else { NameUse::Value };
        Self {
            globals: KNOWN_VARIABLES.iter().map(|name| ((*name).to_owned(), array(name))).collect(),
            global_places: (0..).zip(KNOWN_VARIABLES).map(|(at, name)| (name.to_owned(), at)).collect(),
            functions: Vec::new(),
            function_places: HashMap::new(),
            current: None,
            calls: Vec::new(),
        }
    }

    /// Finds or adds a variable.
    pub(super) fn variable(&mut self, name: &str) -> Result<VariableRef, String> {
        let parameters = self.current.map(|at| &self.functions[at].parameters);
        if let Some(at) = parameters.and_then(|all| all.iter().position(|(own, _)| own == name)) {
            return Ok(VariableRef::Local(at));
        }
        if self.function_places.contains_key(name) {
            return Err(format!("illegal reference to function {name}"));
        }
        let next = self.globals.len();
        let at = *self.global_places.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.globals.push((name.to_owned(), NameUse::Unknown));
        }
        Ok(VariableRef::Global(at))
    }

    fn entry(&mut self, function: Option<usize>, variable: VariableRef) -> Option<&mut (String, NameUse)> {
        match variable {
            VariableRef::Global(at) => self.globals.get_mut(at),
            VariableRef::Local(at) => self.functions.get_mut(function?)?.parameters.get_mut(at),
        }
    }

    /// Records the use of a variable.
    pub(super) fn use_as(&mut self, variable: VariableRef, wanted: NameUse) -> Result<(), String> {
        let place = if matches!(variable, VariableRef::Local(_)) { "local " } else { "" };
        let Some((name, known)) = self.entry(self.current, variable) else { return Ok(()) };
        match known {
            NameUse::Unknown => *known = wanted,
            _ if *known == wanted => {}
            NameUse::Array => return Err(format!("illegal reference to {place}array {name}")),
            NameUse::Value => return Err(format!("illegal reference to {place}variable {name}")),
        }
        Ok(())
    }

    pub(super) fn has_variable(&self, name: &str) -> bool {
        let parameters = self.current.map(|at| &self.functions[at].parameters);
        self.global_places.contains_key(name)
            || parameters.is_some_and(|all| all.iter().any(|(own, _)| own == name))
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        self.function_places.contains_key(name)
    }

    /// Finds or adds a function.
    pub(super) fn function(&mut self, name: &str, line: usize) -> usize {
        let next = self.functions.len();
        let at = *self.function_places.entry(name.to_owned()).or_insert(next);
        if at == next {
            let name = name.to_owned();
            self.functions.push(KnownFunction { name, is_defined: false, parameters: Vec::new(), line });
        }
        at
    }

    /// Begins the definition of a function.
    pub(super) fn define(
        &mut self,
        name: &str,
        parameters: Vec<String>,
        line: usize,
    ) -> Result<usize, String> {
        if self.global_places.contains_key(name) {
            return Err(format!("illegal reference to variable {name}"));
        }
        for (at, parameter) in parameters.iter().enumerate() {
            if parameters[..at].contains(parameter) {
                return Err(format!("{parameter} is duplicated in argument list"));
            }
        }
        let at = self.function(name, line);
        if self.functions[at].is_defined {
            return Err(format!("redefinition of {name}"));
        }
        self.functions[at].is_defined = true;
        self.functions[at].parameters = parameters.into_iter().map(|name| (name, NameUse::Unknown)).collect();
        self.current = Some(at);
        Ok(at)
    }

    pub(super) fn end_function(&mut self) {
        self.current = None;
    }

    pub(super) fn is_in_function(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn call(&mut self, function: usize, args: Vec<Option<VariableRef>>, line: usize) {
        self.calls.push(CallSite { caller: self.current, function, args, line });
    }

    /// Determines which variables are arrays because functions use them as arrays. Returns the globals, and the parameters of
    /// all functions.
    ///
    /// # Errors
    /// The line, and the reason.
    #[expect(clippy::type_complexity, reason = "two lists of names")]
    pub(super) fn finish(
        mut self,
        last_line: usize,
    ) -> Result<(Vec<(String, bool)>, Vec<Vec<bool>>), (usize, String)> {
        if let Some(function) = self.functions.iter().find(|function| !function.is_defined) {
            return Err((last_line.max(function.line), format!("function {} never defined", function.name)));
        }
        let calls = std::mem::take(&mut self.calls);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for call in &calls {
                has_changed |= self.settle(call).map_err(|reason| (call.line, reason))?;
            }
        }
        let is_array = |(name, known): (String, NameUse)| (name, known == NameUse::Array);
        let parameters = |function: KnownFunction| {
            function.parameters.into_iter().map(|(_, known)| known == NameUse::Array).collect()
        };
        Ok((
            self.globals.into_iter().map(is_array).collect(),
            self.functions.into_iter().map(parameters).collect(),
        ))
    }

    /// Matches the arguments of a call with the parameters. Returns whether this determined another use.
    fn settle(&mut self, call: &CallSite) -> Result<bool, String> {
        let name = self.functions[call.function].name.clone();
        if call.args.len() > self.functions[call.function].parameters.len() {
            return Err(format!("too many arguments in call to {name}"));
        }
        let mut has_changed = false;
        for (at, variable) in call.args.iter().enumerate() {
            let wanted = self.functions[call.function].parameters[at].1;
            let wrong = || Err(format!("type error in arg({}) in call to {name}", at + 1));
            let Some(variable) = variable else {
                if wanted == NameUse::Array {
                    return wrong();
                }
                continue;
            };
            let Some((_, given)) = self.entry(call.caller, *variable) else { continue };
            match (*given, wanted) {
                (NameUse::Unknown, NameUse::Unknown) => {}
                (NameUse::Unknown, _) => {
                    *given = wanted;
                    has_changed = true;
                }
                (known, NameUse::Unknown) => {
                    self.functions[call.function].parameters[at].1 = known;
                    has_changed = true;
                }
                (known, wanted) if known == wanted => {}
                _ => return wrong(),
            }
        }
        Ok(has_changed)
    }
}
