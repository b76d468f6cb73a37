<?php

declare(strict_types=1);

/*
 * Compares responses (NAME.out) with the expectations of tests (NAME.expect, NAME.expectf or
 * NAME.expectregex). The argument is the folder of these files. Prints the names that match, one
 * per line.
 *
 * Written in PHP because the expectations are Perl-compatible regular expressions.
 */

/** The placeholders of EXPECTF, as listed in https://qa.php.net/phpt_details.php. */
const PLACEHOLDERS = [
    '%e' => '/',
    '%s' => '[^\r\n]+',
    '%S' => '[^\r\n]*',
    '%a' => '.+',
    '%A' => '.*',
    '%w' => '\s*',
    '%i' => '[+-]?\d+',
    '%d' => '\d+',
    '%x' => '[0-9a-fA-F]+',
    '%f' => '[+-]?\.?\d+\.?\d*(?:[Ee][+-]?\d+)?',
    '%c' => '.',
    '%0' => '\x00',
];

function pattern(string $kind, string $expected): string
{
    if ($kind === 'expectregex') {
        return $expected;
    }
    $parts = preg_split('/(%r.*?%r)/s', $expected, -1, PREG_SPLIT_DELIM_CAPTURE);
    foreach ($parts as $at => $part) {
        $parts[$at] = $at % 2 === 1
            ? '(' . substr($part, 2, -2) . ')'
            : strtr(preg_quote($part, '/'), PLACEHOLDERS);
    }

    return implode('', $parts);
}

function clean(string $text): string
{
    return str_replace("\r\n", "\n", trim($text));
}

foreach (glob($argv[1] . '/*.expect*') as $file) {
    $name = pathinfo($file, PATHINFO_FILENAME);
    $kind = pathinfo($file, PATHINFO_EXTENSION);
    $expected = clean(file_get_contents($file));
    $actual = clean(file_get_contents("$argv[1]/$name.out"));
    $matches = $kind === 'expect'
        ? $expected === $actual
        : preg_match('/^' . pattern($kind, $expected) . '$/s', $actual) === 1;
    if ($matches) {
        echo $name, "\n";
    }
}
