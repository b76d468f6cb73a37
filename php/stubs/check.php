<?php

/* Runs in the server: compares php/stubs/samovar.php with what is loaded; prints "ok" or the differences. */

declare(strict_types=1);

/** "name(int $a = 1): string" of a function or method, from its reflection. */
function signature(ReflectionFunctionAbstract $function): string
{
    $parameters = array_map(function (ReflectionParameter $p): string {
        $type = $p->getType() ? $p->getType() . ' ' : '';
        $default = $p->isDefaultValueAvailable() ? ' = ' . var_export($p->getDefaultValue(), true) : '';

        return preg_replace('/\s+/', ' ', "$type\${$p->getName()}$default");
    }, $function->getParameters());

    return $function->getName() . '(' . implode(', ', $parameters) . ')'
        . ($function->getReturnType() ? ': ' . $function->getReturnType() : '');
}

/** @return list<string> what the server has */
function loaded(): array
{
    $all = [];
    foreach (['Samovar\serve', 'fastcgi_finish_request', 'apache_request_headers', 'getallheaders'] as $name) {
        $all[] = signature(new ReflectionFunction($name));
    }
    foreach (['Samovar\Request', 'Samovar\Response'] as $class) {
        foreach ((new ReflectionClass($class))->getMethods() as $method) {
            $all[] = "$class::" . implode(' ', Reflection::getModifierNames($method->getModifiers())) . ' '
                . signature($method);
        }
    }
    sort($all);

    return $all;
}

/** @return list<string> what the stubs say: the same, loaded under another namespace */
function described(): array
{
    $text = file_get_contents(__DIR__ . '/samovar.php');
    $text = str_replace(['namespace Samovar {', "namespace {\n"], ['namespace Stub\Samovar {', "namespace Stub {\n"], $text);
    // Bodies are empty: nothing of this is ever called.
    eval(substr($text, strlen('<?php')));
    $all = [];
    foreach (['Samovar\serve', 'fastcgi_finish_request', 'apache_request_headers', 'getallheaders'] as $name) {
        $all[] = str_replace('stub\\', '', str_replace('Stub\\', '', signature(new ReflectionFunction("Stub\\$name"))));
    }
    foreach (['Samovar\Request', 'Samovar\Response'] as $class) {
        foreach ((new ReflectionClass("Stub\\$class"))->getMethods() as $method) {
            $all[] = "$class::" . implode(' ', Reflection::getModifierNames($method->getModifiers())) . ' '
                . signature($method);
        }
    }
    sort($all);

    return $all;
}

[$loaded, $described] = [loaded(), described()];
$extra = array_diff($loaded, $described);
$missing = array_diff($described, $loaded);
header('Content-Type: text/plain');
echo $extra || $missing
    ? "only in the server:\n  " . implode("\n  ", $extra) . "\nonly in the stubs:\n  " . implode("\n  ", $missing) . "\n"
    : 'ok';
