<?php

/*
 * Compares the stubs in this folder with the running server, by reflection. Prints "ok" or the
 * differences.
 *
 * samovar serve php/stubs/check.php --compat apcu
 *
 * The server's functions and classes come from its modules, so that the check also finds those
 * without a stub.
 */

declare(strict_types=1);

namespace Samovar\Stubs;

const EXTENSIONS = ['samovar', 'apcu'];
/**
 * Namespace into which the stubs are loaded, because the functions and classes that they describe
 * already exist.
 */
const DESCRIBED = 'Described';

/** Returns a parameter as text, such as "string $a = 'x'" or "array &...$rest". */
function parameter(\ReflectionParameter $parameter): string
{
    $text = $parameter->hasType() ? $parameter->getType() . ' ' : '';
    $text .= $parameter->isPassedByReference() ? '&' : '';
    $text .= ($parameter->isVariadic() ? '...$' : '$') . $parameter->getName();
    if ($parameter->isDefaultValueAvailable()) {
        $text .= ' = ' . json_encode($parameter->getDefaultValue(), JSON_PRESERVE_ZERO_FRACTION);
    } elseif ($parameter->isOptional() && !$parameter->isVariadic()) {
        $text .= ' = ?';
    }

    return $text;
}

/** Returns a signature as text, such as "name(string $a = 'x'): bool". */
function signature(\ReflectionFunctionAbstract $function): string
{
    $name = $function instanceof \ReflectionMethod ? $function->getShortName() : $function->getName();
    $parameters = implode(', ', array_map(parameter(...), $function->getParameters()));
    $returned = $function->hasReturnType() ? ': ' . $function->getReturnType() : '';

    return "$name($parameters)$returned";
}

/** @return list<string> a class and its members, one per line */
function lines(\ReflectionClass $class): array
{
    $name = $class->getName();
    $modifiers = implode(' ', \Reflection::getModifierNames($class->getModifiers()));
    $kind = $class->isInterface() ? 'interface' : ($class->isEnum() ? 'enum' : 'class');
    $parents = $class->getInterfaceNames();
    if ($class->getParentClass()) {
        $parents[] = $class->getParentClass()->getName();
    }
    sort($parents);
    $lines = [trim("$modifiers $kind $name " . implode(' ', $parents))];
    foreach ([...$class->getMethods(), ...$class->getProperties()] as $member) {
        $what = $member instanceof \ReflectionMethod
            ? signature($member)
            : trim(($member->getType() ?? '') . ' $' . $member->getName());
        $lines[] = "$name: " . implode(' ', \Reflection::getModifierNames($member->getModifiers())) . " $what";
    }
    foreach ($class->getReflectionConstants() as $constant) {
        $lines[] = "$name: const {$constant->getName()} = " . json_encode($constant->getValue());
    }

    return $lines;
}

/** @return list<string> functions, constants and classes of one of the server's modules */
function loaded(string $extension): array
{
    $module = new \ReflectionExtension($extension);
    $lines = array_map(signature(...), array_values($module->getFunctions()));
    foreach ($module->getConstants() as $name => $value) {
        $lines[] = "const $name = " . json_encode($value);
    }

    return array_merge($lines, ...array_map(lines(...), array_values($module->getClasses())));
}

/** @return list<string> functions, constants and classes that a stub file declares */
function described(string $file): array
{
    $text = preg_replace('/^<\?php/', '', file_get_contents($file));
    $text = preg_replace('/^namespace \{$/m', 'namespace ' . DESCRIBED . ' {', $text);
    $text = preg_replace('/^namespace (Samovar.*) \{$/m', 'namespace ' . DESCRIBED . '\\\\$1 {', $text);
    $text = preg_replace('/^namespace (Samovar.*);$/m', 'namespace ' . DESCRIBED . '\\\\$1;', $text);
    $classes = get_declared_classes();
    $constants = get_defined_constants();
    $functions = get_defined_functions()['user'];
    // The functions are never called: their bodies are empty.
    eval($text);
    $functions = array_diff(get_defined_functions()['user'], $functions);
    $lines = array_map(fn (string $name): string => signature(new \ReflectionFunction($name)), $functions);
    foreach (array_diff(get_declared_classes(), $classes) as $class) {
        array_push($lines, ...lines(new \ReflectionClass($class)));
    }
    foreach (array_diff_key(get_defined_constants(), $constants) as $name => $value) {
        $lines[] = "const $name = " . json_encode($value);
    }

    return str_replace(DESCRIBED . '\\', '', array_values($lines));
}

/** @param list<string> $lines */
function listed(string $title, array $lines): string
{
    sort($lines);

    return $lines === [] ? '' : "$title:\n  " . implode("\n  ", $lines) . "\n";
}

$loaded = array_merge(...array_map(loaded(...), EXTENSIONS));
$files = ['samovar.php', 'shared.php', 'tasks.php', 'jobs.php', 'frankenphp.php', 'pinba.php',
    'apcu.php'];
$described = array_merge(...array_map(fn (string $file): array => described(__DIR__ . "/$file"), $files));
$differences = listed('only in the server', array_diff($loaded, $described))
    . listed('only in the stubs', array_diff($described, $loaded));

header('Content-Type: text/plain; charset=utf-8');
http_response_code($differences === '' ? 200 : 500);
echo $differences === '' ? 'ok' : $differences;
