//! The walk through the tree: order of the nodes, and the state at each of them.

use super::checker::Checker;
use super::guards::{Fact, facts, leaves};
use super::literal::{self, has_static};
use super::scope::{Function, Loop, Origin};
use mago_syntax::ast::{
    BinaryOperator, Expression, ForeachTarget, FunctionLikeParameterList, If, IfBody, Node,
    Statement, Variable,
};

/// Kind of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Plain,
    Closure,
    Arrow,
}

/// A step of the walk.
pub(super) enum Step<'a> {
    Enter(Node<'a, 'a>),
    /// Adds facts that hold for the next nodes.
    Assume(Vec<Fact>),
    /// Forgets all facts after the first ones.
    Forget(usize),
    /// After an `if` without `else` whose body never ends: its condition is false from here on.
    AfterIf(&'a If<'a>),
    LeaveFunction,
    LeaveClass,
    LeaveLoop,
}

impl<'a> Checker<'_, 'a> {
    pub(super) fn walk(&mut self) {
        let mut steps = vec![Step::Enter(Node::Program(self.program))];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(node) => self.enter(node, &mut steps),
                Step::Assume(facts) => self.guards.0.extend(facts),
                Step::Forget(count) => self.guards.0.truncate(count),
                Step::AfterIf(statement) => {
                    let mut known = Vec::new();
                    facts(statement.condition, false, 0, &mut known);
                    self.guards.0.extend(known);
                }
                Step::LeaveFunction => {
                    if self.functions.len() > 1 {
                        self.functions.pop();
                    }
                }
                Step::LeaveClass => self.leave_class(),
                Step::LeaveLoop => {
                    self.function().loops.pop();
                }
            }
        }
    }

    fn enter(&mut self, node: Node<'a, 'a>, steps: &mut Vec<Step<'a>>) {
        match node {
            // The name of a namespace, of an import or of a constant is no class.
            Node::Use(import) => {
                self.names.import(import);
                return;
            }
            Node::ConstantAccess(access) => {
                self.constant(access);
                return;
            }
            // A type may name a class that does not exist.
            Node::Hint(_) => return,
            Node::Namespace(namespace) => {
                self.names.enter(namespace);
                let children = steps.len();
                node.visit_children(|child| {
                    if !matches!(child, Node::Identifier(_)) {
                        steps.push(Step::Enter(child));
                    }
                });
                steps[children..].reverse();
                return;
            }
            Node::If(statement) => {
                self.enter_if(statement, steps);
                return;
            }
            Node::Conditional(conditional) => {
                self.conditional(conditional);
                let count = self.guards.0.len();
                steps.push(Step::Forget(count));
                steps.push(Step::Enter(Node::Expression(conditional.r#else)));
                steps.push(Step::Assume(known(conditional.condition, false)));
                steps.push(Step::Forget(count));
                if let Some(then) = conditional.then {
                    steps.push(Step::Enter(Node::Expression(then)));
                    steps.push(Step::Assume(known(conditional.condition, true)));
                }
                steps.push(Step::Enter(Node::Expression(conditional.condition)));
                return;
            }
            Node::Binary(binary) => {
                self.binary(binary);
                let is_and = match binary.operator {
                    BinaryOperator::And(_) | BinaryOperator::LowAnd(_) => Some(true),
                    BinaryOperator::Or(_) | BinaryOperator::LowOr(_) => Some(false),
                    _ => None,
                };
                if let Some(is_true) = is_and {
                    steps.push(Step::Forget(self.guards.0.len()));
                    steps.push(Step::Enter(Node::Expression(binary.rhs)));
                    steps.push(Step::Assume(known(binary.lhs, is_true)));
                    steps.push(Step::Enter(Node::Expression(binary.lhs)));
                    return;
                }
            }
            Node::FunctionCall(call) => {
                self.function_call(call);
                // The name is no class.
                if !matches!(call.function, Expression::Identifier(_)) {
                    steps.push(Step::Enter(Node::Expression(call.function)));
                }
                steps.push(Step::Enter(Node::ArgumentList(&call.argument_list)));
                return;
            }
            Node::FunctionPartialApplication(call) => {
                if let Expression::Identifier(name) = call.function {
                    self.function_name(name);
                } else {
                    steps.push(Step::Enter(Node::Expression(call.function)));
                }
                return;
            }
            _ => self.visit(node, steps),
        }
        self.children(node, steps);
    }

    /// Adds the children, the first one on top.
    fn children(&mut self, node: Node<'a, 'a>, steps: &mut Vec<Step<'a>>) {
        let is_block = matches!(
            node,
            Node::Block(_)
                | Node::Program(_)
                | Node::SwitchExpressionCase(_)
                | Node::SwitchDefaultCase(_)
                | Node::ForColonDelimitedBody(_)
                | Node::ForeachColonDelimitedBody(_)
                | Node::WhileColonDelimitedBody(_)
                | Node::DeclareColonDelimitedBody(_)
        );
        if is_block {
            steps.push(Step::Forget(self.guards.0.len()));
        }
        let children = steps.len();
        node.visit_children(|child| steps.push(Step::Enter(child)));
        steps[children..].reverse();
    }

    fn enter_if(&mut self, statement: &'a If<'a>, steps: &mut Vec<Step<'a>>) {
        let count = self.guards.0.len();
        let is_single = match &statement.body {
            IfBody::Statement(body) => {
                body.else_clause.is_none()
                    && body.else_if_clauses.is_empty()
                    && leaves(body.statement)
            }
            IfBody::ColonDelimited(body) => {
                body.else_clause.is_none()
                    && body.else_if_clauses.is_empty()
                    && body.statements.last().is_some_and(leaves)
            }
        };
        if is_single {
            steps.push(Step::AfterIf(statement));
        }
        steps.push(Step::Forget(count));
        // In reverse order: else, then the branches.
        let mut later = Vec::new();
        let mut negative = known(statement.condition, false);
        later.push(Step::Enter(Node::Expression(statement.condition)));
        later.push(Step::Assume(known(statement.condition, true)));
        match &statement.body {
            IfBody::Statement(body) => {
                later.push(Step::Enter(Node::Statement(body.statement)));
                for clause in &body.else_if_clauses {
                    later.push(Step::Forget(count));
                    later.push(Step::Assume(negative.clone()));
                    later.push(Step::Enter(Node::Expression(clause.condition)));
                    later.push(Step::Assume(known(clause.condition, true)));
                    later.push(Step::Enter(Node::Statement(clause.statement)));
                    negative.extend(known(clause.condition, false));
                }
                if let Some(clause) = &body.else_clause {
                    later.push(Step::Forget(count));
                    later.push(Step::Assume(negative));
                    later.push(Step::Enter(Node::Statement(clause.statement)));
                }
            }
            IfBody::ColonDelimited(body) => {
                let statements = |list: &'a [Statement<'a>], later: &mut Vec<Step<'a>>| {
                    later.extend(list.iter().map(|one| Step::Enter(Node::Statement(one))));
                };
                statements(body.statements.as_slice(), &mut later);
                for clause in &body.else_if_clauses {
                    later.push(Step::Forget(count));
                    later.push(Step::Assume(negative.clone()));
                    later.push(Step::Enter(Node::Expression(clause.condition)));
                    later.push(Step::Assume(known(clause.condition, true)));
                    statements(clause.statements.as_slice(), &mut later);
                    negative.extend(known(clause.condition, false));
                }
                if let Some(clause) = &body.else_clause {
                    later.push(Step::Forget(count));
                    later.push(Step::Assume(negative));
                    statements(clause.statements.as_slice(), &mut later);
                }
            }
        }
        steps.extend(later.into_iter().rev());
    }

    /// State and rules of the other nodes.
    fn visit(&mut self, node: Node<'a, 'a>, steps: &mut Vec<Step<'a>>) {
        match node {
            Node::Class(class) => {
                self.class(class);
                steps.push(Step::LeaveClass);
            }
            Node::Interface(interface) => {
                self.interface(interface);
                steps.push(Step::LeaveClass);
            }
            Node::Trait(item) => {
                self.r#trait(item);
                steps.push(Step::LeaveClass);
            }
            Node::Enum(item) => {
                self.r#enum(item);
                steps.push(Step::LeaveClass);
            }
            Node::AnonymousClass(class) => {
                self.anonymous_class(class);
                steps.push(Step::LeaveClass);
            }
            Node::Function(function) => {
                self.function_declaration(function);
                self.enter_function(&function.parameter_list, false, Body::Plain, steps);
            }
            Node::Method(method) => {
                self.method_declaration(method);
                let has_this = !has_static(method.modifiers.as_slice());
                self.enter_function(&method.parameter_list, has_this, Body::Plain, steps);
            }
            Node::Closure(closure) => {
                let has_this = self.function().has_this && closure.r#static.is_none();
                self.enter_function(&closure.parameter_list, has_this, Body::Closure, steps);
                self.inherit(closure);
            }
            Node::ArrowFunction(closure) => {
                let has_this = self.function().has_this && closure.r#static.is_none();
                self.enter_function(&closure.parameter_list, has_this, Body::Arrow, steps);
            }
            Node::FunctionLikeParameterList(list) => self.parameters(list),
            Node::Foreach(statement) => {
                self.foreach(statement);
                let target = match &statement.target {
                    ForeachTarget::Value(target) => target.value,
                    ForeachTarget::KeyValue(target) => target.value,
                };
                let is_by_reference = matches!(target, Expression::UnaryPrefix(_));
                let variable = match literal::bare(statement.expression) {
                    Expression::Variable(Variable::Direct(variable)) => {
                        String::from_utf8_lossy(variable.name).into_owned()
                    }
                    _ => String::new(),
                };
                self.enter_loop(Loop::Foreach { variable, is_by_reference }, steps);
            }
            Node::For(_) | Node::While(_) | Node::DoWhile(_) => {
                self.enter_loop(Loop::Plain, steps);
            }
            Node::Switch(statement) => {
                self.switch(statement);
                self.enter_loop(Loop::Switch, steps);
            }
            _ => {
                self.statement(node);
                self.expression(node);
            }
        }
    }

    fn enter_loop(&mut self, kind: Loop, steps: &mut Vec<Step<'a>>) {
        self.function().loops.push(kind);
        steps.push(Step::LeaveLoop);
    }

    fn enter_function(
        &mut self,
        list: &'a FunctionLikeParameterList<'a>,
        has_this: bool,
        body: Body,
        steps: &mut Vec<Step<'a>>,
    ) {
        let is_closure = body != Body::Plain;
        let mut function = Function { is_closure, has_this, ..Function::default() };
        if body == Body::Arrow {
            function.variables.clone_from(&self.function().variables);
        }
        for parameter in &list.parameters {
            let origin = match &parameter.hint {
                Some(hint) => self.origin_of_hint(hint),
                None => Origin::Other,
            };
            let name = String::from_utf8_lossy(parameter.variable.name).into_owned();
            function.variables.insert(name, origin);
        }
        self.functions.push(function);
        steps.push(Step::LeaveFunction);
    }

    /// Variables of a closure's `use`.
    fn inherit(&mut self, closure: &mago_syntax::ast::Closure<'_>) {
        let Some(clause) = &closure.use_clause else { return };
        let outer = self.functions.len().saturating_sub(2);
        for used in &clause.variables {
            let name = String::from_utf8_lossy(used.variable.name).into_owned();
            if let Some(origin) = self.functions[outer].variables.get(&name).cloned() {
                self.function().variables.insert(name, origin);
            }
        }
    }
}

fn known(condition: &Expression<'_>, is_true: bool) -> Vec<Fact> {
    let mut known = Vec::new();
    facts(condition, is_true, 0, &mut known);
    known
}
