#!/usr/bin/env php
<?php

/*
 * Generates the headers in crates/worker/csrc/functions/arginfo from the stubs in php/stubs. The
 * headers describe our functions and methods (names, parameters, types) to the engine. So each
 * signature is defined only once, in its stub.
 *
 * php scripts/arginfo.php            writes the headers php scripts/arginfo.php --check    lists
 * the headers that differ from the stubs, and fails if
 *                                      there are any
 *
 * A function's code is ZEND_FUNCTION(name), with `_` for `\`, in a C file that includes
 * prototypes.h. A method's code is ZEND_METHOD(Class, name), in the C file of the class. A stub
 * with `@implementation-alias other` has no code of its own. The headers are checked in, so that a
 * build does not need php.
 */

declare(strict_types=1);

namespace Samovar\Arginfo;

const STUBS = [
    'samovar.php', 'shared.php', 'tasks.php', 'jobs.php', 'frankenphp.php', 'pinba.php', 'apcu.php',
    'mock.php',
];
/**
 * Extensions whose functions and constants are in separate tables, because they are left out if the
 * extension itself is loaded: prefix of the functions' names => prefix of the constants' names.
 */
const APART = ['pinba' => 'pinba', 'apcu' => 'apc'];
/** Maximum width of a line of the headers. */
const COLUMNS_MAX = 100;
/** Minimum length of the rest of a broken line. */
const REST_MIN = 12;
const OUTPUT = __DIR__ . '/../crates/worker/csrc/functions/arginfo';

/** The engine's names of a built-in type: as a code (IS_LONG) and as a bit of a mask
 * (MAY_BE_LONG). */
const TYPES = [
    'array' => ['IS_ARRAY', 'MAY_BE_ARRAY'],
    'bool' => ['_IS_BOOL', 'MAY_BE_BOOL'],
    'callable' => ['IS_CALLABLE', 'MAY_BE_CALLABLE'],
    'false' => ['IS_FALSE', 'MAY_BE_FALSE'],
    'float' => ['IS_DOUBLE', 'MAY_BE_DOUBLE'],
    'int' => ['IS_LONG', 'MAY_BE_LONG'],
    'mixed' => ['IS_MIXED', 'MAY_BE_ANY'],
    'null' => ['IS_NULL', 'MAY_BE_NULL'],
    'static' => ['IS_STATIC', 'MAY_BE_STATIC'],
    'string' => ['IS_STRING', 'MAY_BE_STRING'],
    'void' => ['IS_VOID', 'MAY_BE_VOID'],
];

function builtin(\ReflectionNamedType $type): array
{
    return TYPES[$type->getName()]
        ?? throw new \LogicException("scripts/arginfo.php: unknown type {$type->getName()}: add it to TYPES");
}

/** "MAY_BE_ARRAY | MAY_BE_BOOL". */
function mask(\ReflectionUnionType $type): string
{
    return implode(' | ', array_map(fn (\ReflectionNamedType $part): string => builtin($part)[1], $type->getTypes()));
}

/** Whether this is the name of a class or an interface, not of a built-in type. */
function is_class(string $name): bool
{
    return class_exists($name, false) || interface_exists($name, false);
}

/** Whether the type must be marked as nullable. Not for mixed and null, which include null. */
function is_nullable(\ReflectionNamedType $type): int
{
    return (int) ($type->allowsNull() && !in_array($type->getName(), ['mixed', 'null'], true));
}

/** The default as PHP code in a C string, such as "\"[]\"". */
function default_value(\ReflectionParameter $parameter): string
{
    $value = $parameter->getDefaultValue();
    $code = match (true) {
        $parameter->isDefaultValueConstant() => $parameter->getDefaultValueConstantName(),
        $value === null => 'null',
        $value === [] => '[]',
        is_bool($value) => $value ? 'true' : 'false',
        is_int($value) => (string) $value,
        is_float($value) => json_encode($value, JSON_PRESERVE_ZERO_FRACTION),
        is_string($value) => var_export($value, true),
        default => throw new \LogicException("scripts/arginfo.php: unsupported default value of \${$parameter->getName()}"),
    };

    return '"' . addcslashes($code, '"\\') . '"';
}

function parameter(\ReflectionParameter $parameter): string
{
    if ($parameter->isVariadic() && (string) $parameter->getType() === 'mixed') {
        return "ZEND_ARG_VARIADIC_TYPE_INFO(0, {$parameter->getName()}, IS_MIXED, 0)";
    }
    if ($parameter->isVariadic() || $parameter->isPassedByReference() && $parameter->hasType()) {
        throw new \LogicException("scripts/arginfo.php: unsupported parameter \${$parameter->getName()}");
    }
    $type = $parameter->getType();
    $name = $parameter->getName();
    $has_default = $parameter->isDefaultValueAvailable();
    $suffix = $has_default ? '_WITH_DEFAULT_VALUE' : '';
    $default = $has_default ? ', ' . default_value($parameter) : '';

    return match (true) {
        $type === null => "ZEND_ARG_INFO$suffix(" . (int) $parameter->isPassedByReference() . ", $name$default)",
        $type instanceof \ReflectionUnionType =>
            "ZEND_ARG_TYPE_MASK(0, $name, " . mask($type) . ', ' . ($has_default ? default_value($parameter) : 'NULL') . ')',
        $type instanceof \ReflectionNamedType && is_class($type->getName()) && !$has_default =>
            "ZEND_ARG_OBJ_INFO(0, $name, " . addslashes($type->getName()) . ', ' . (int) $type->allowsNull() . ')',
        $type instanceof \ReflectionNamedType =>
            "ZEND_ARG_TYPE_INFO$suffix(0, $name, " . builtin($type)[0] . ', ' . is_nullable($type) . "$default)",
        default => throw new \LogicException("scripts/arginfo.php: unsupported type $type"),
    };
}

function arginfo(string $name, \ReflectionFunctionAbstract $function): string
{
    $required = $function->getNumberOfRequiredParameters();
    $returned = $function->getReturnType();
    $lines = [match (true) {
        $returned === null => "ZEND_BEGIN_ARG_INFO_EX($name, 0, 0, $required)",
        $returned instanceof \ReflectionUnionType =>
            "ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX($name, 0, $required, " . mask($returned) . ')',
        $returned instanceof \ReflectionNamedType && is_class($returned->getName()) =>
            "ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX($name, 0, $required, " . addslashes($returned->getName()) . ', '
                . (int) $returned->allowsNull() . ')',
        $returned instanceof \ReflectionNamedType =>
            "ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX($name, 0, $required, " . builtin($returned)[0] . ', '
                . is_nullable($returned) . ')',
        default => throw new \LogicException("scripts/arginfo.php: unsupported type $returned"),
    }];
    foreach ($function->getParameters() as $parameter) {
        $lines[] = '    ' . parameter($parameter);
    }
    $lines[] = 'ZEND_END_ARG_INFO()';

    return implode("\n", $lines) . "\n";
}

function symbol(string $name): string
{
    return str_replace('\\', '_', $name);
}

/** Breaks lines wider than 100 columns after a comma, and continues a macro with a backslash. */
function wrapped(string $content): string
{
    $lines = [];
    foreach (explode("\n", $content) as $line) {
        $end = str_ends_with($line, ' \\') ? ' \\' : '';
        $begin = substr($line, 0, strspn($line, ' ')) . '    ';
        while (strlen($line) > COLUMNS_MAX) {
            $most = min(COLUMNS_MAX - strlen($end), strlen($line) - REST_MIN);
            $at = strrpos(substr($line, 0, $most), ', ');
            if ($at === false) {
                throw new \LogicException("scripts/arginfo.php: too wide, and nowhere to break: $line");
            }
            $lines[] = substr($line, 0, $at + 1) . $end;
            $line = $begin . substr($line, $at + 2);
        }
        $lines[] = $line;
    }

    return implode("\n", $lines);
}

/** Text of a header. It includes nothing: the C file must include php.h first. */
function header(string $guard, string $title, string $content): string
{
    $macro = 'SAMOVAR_FUNCTIONS_ARGINFO_' . strtoupper($guard) . '_H';
    $content = wrapped($content);

    return <<<TEXT
    /* clang-format off */
    /* $title.
     *
     * Generated by scripts/arginfo.php from php/stubs. Change the stubs, not this file. */
    #ifndef $macro
    #define $macro

    $content
    #endif

    TEXT;
}

/** The function whose code this function shares; null if it has its own code. */
function alias(\ReflectionFunction $function): ?string
{
    return preg_match('/@implementation-alias (\w+)/', (string) $function->getDocComment(), $found) ? $found[1] : null;
}

/** @param list<\ReflectionFunction> $functions */
function prototypes_header(array $functions): string
{
    $prototypes = '';
    foreach ($functions as $function) {
        $prototypes .= alias($function) === null ? 'ZEND_FUNCTION(' . symbol($function->getName()) . ");\n" : '';
    }

    return header('prototypes', 'Prototypes of the functions that PHP code can call', $prototypes);
}

/** @param list<\ReflectionFunction> $functions */
function functions_header(array $functions, string $name, string $table): string
{
    $arginfo = $entries = '';
    foreach ($functions as $function) {
        $c = symbol($function->getName());
        $alias = alias($function);
        $arginfo .= arginfo("arginfo_$c", $function) . "\n";
        $code = 'ZEND_FN(' . ($alias ?? $c) . ')';
        $entries .= $function->inNamespace()
            ? "    ZEND_NS_FENTRY(\"{$function->getNamespaceName()}\", {$function->getShortName()}, $code, arginfo_$c, 0)\n"
            : "    ZEND_FENTRY($c, $code, arginfo_$c, 0)\n";
    }

    return header($name, 'Table of the functions that PHP code can call', <<<C
        {$arginfo}static const zend_function_entry {$table}[] = {
        $entries    ZEND_FE_END
        };

        C);
}

function flags(\ReflectionMethod $method): string
{
    $flags = [$method->isPrivate() ? 'ZEND_ACC_PRIVATE' : 'ZEND_ACC_PUBLIC'];
    if ($method->isStatic()) {
        $flags[] = 'ZEND_ACC_STATIC';
    }

    return implode(' | ', $flags);
}

/** @return list<\ReflectionMethod> the methods declared in the stub itself */
function own_methods(\ReflectionClass $class): array
{
    $is_own = fn (\ReflectionMethod $method): bool => $method->getDeclaringClass()->getName() === $class->getName();

    return array_values(array_filter($class->getMethods(), $is_own));
}

function class_header(\ReflectionClass $class): string
{
    $c = symbol($class->getName());
    $arginfo = $prototypes = $entries = '';
    foreach (own_methods($class) as $method) {
        $arginfo .= arginfo("arginfo_{$c}_{$method->getName()}", $method) . "\n";
        $prototypes .= "static ZEND_METHOD($c, {$method->getName()});\n";
        $entries .= "    ZEND_ME($c, {$method->getName()}, arginfo_{$c}_{$method->getName()}, " . flags($method) . ")\n";
    }

    return header($class->getShortName(), "Methods of {$class->getName()}", <<<C
        $prototypes
        {$arginfo}static const zend_function_entry samovar_methods[] = {
        $entries    ZEND_FE_END
        };

        C);
}

/** @param array<string, int> $constants */
function constants_header(array $constants, string $name, string $macro): string
{
    $values = $entries = '';
    foreach ($constants as $name => $value) {
        $values .= "    $name = $value,\n";
        $entries .= "    REGISTER_LONG_CONSTANT(\"$name\", $name, CONST_PERSISTENT); \\\n";
    }

    return header($name, 'Constants that PHP code can use', <<<C
        enum {
        $values};

        /* For MINIT: it uses MINIT's parameter `module_number`. */
        #define $macro() do { \\
        $entries} while (0)

        C);
}

/** @return array<string, string> content by file name */
function headers(): array
{
    $classes = get_declared_classes();
    $constants = get_defined_constants();
    foreach (STUBS as $stub) {
        require __DIR__ . "/../php/stubs/$stub";
    }
    $ours = array_filter(
        array_map(fn (string $name): \ReflectionFunction => new \ReflectionFunction($name), get_defined_functions()['user']),
        fn (\ReflectionFunction $function): bool => $function->getNamespaceName() !== __NAMESPACE__,
    );
    $begins = fn (string $name, string $with): bool => str_starts_with(strtolower($name), "{$with}_");
    $headers = ['prototypes.h' => prototypes_header($ours)];
    foreach (APART as $extension => $_) {
        $apart = array_filter($ours, fn (\ReflectionFunction $one): bool => $begins($one->getName(), $extension));
        $ours = array_diff_key($ours, $apart);
        $headers["{$extension}_functions.h"] =
            functions_header($apart, "{$extension}_functions", "samovar_{$extension}_functions");
    }
    $headers['functions.h'] = functions_header($ours, 'functions', 'samovar_functions');
    foreach (array_diff(get_declared_classes(), $classes) as $name) {
        $class = new \ReflectionClass($name);
        if (own_methods($class) !== []) {
            $headers[strtolower($class->getShortName()) . '.h'] = class_header($class);
        }
    }
    $added = array_diff_key(get_defined_constants(), $constants);
    $macro = 'SAMOVAR_REGISTER_CONSTANTS';
    foreach (APART as $extension => $prefix) {
        $apart = array_filter($added, fn (string $name): bool => $begins($name, $prefix), ARRAY_FILTER_USE_KEY);
        $added = array_diff_key($added, $apart);
        $headers["{$extension}_constants.h"] =
            constants_header($apart, "{$extension}_constants", "{$macro}_OF_" . strtoupper($extension));
    }
    $headers['constants.h'] = constants_header($added, 'constants', $macro);

    return $headers;
}

$stale = [];
foreach (headers() as $name => $content) {
    $file = OUTPUT . "/$name";
    if (is_file($file) && file_get_contents($file) === $content) {
        continue;
    }
    $stale[] = $name;
    if (($argv[1] ?? '') !== '--check') {
        is_dir(OUTPUT) || mkdir(OUTPUT);
        file_put_contents($file, $content);
    }
}
if ($stale !== [] && ($argv[1] ?? '') === '--check') {
    fwrite(STDERR, 'differs from the stubs: ' . implode(', ', $stale) . "\nhint: run php scripts/arginfo.php\n");
    exit(1);
}
