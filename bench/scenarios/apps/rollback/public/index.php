<?php

// A string of 4,060 bytes and its header fill a page.
$pages = [];
for ($i = 0; $i < 20000; $i++) {
    $pages[] = str_repeat('a', 4060);
}
$file = tempnam(sys_get_temp_dir(), 'rollback');
file_put_contents($file, str_repeat('x', 8192));
$c = class_exists('FFI') ? FFI::cdef('void *malloc(unsigned long);') : null;
Samovar\checkpoint();

$step = (int) ($_GET['step'] ?? 1);
for ($i = 0, $n = (int) ($_GET['pages'] ?? 0); $i < $n; $i++) {
    $pages[$i * $step][9] = 'b';
}
ob_start();
for ($i = 0, $n = (int) ($_GET['files'] ?? 0); $i < $n; $i++) {
    readfile($file);
}
switch ($_GET['do'] ?? '') {
    case 'string':
        $text = str_repeat('x', (int) $_GET['bytes']);
        break;
    case 'malloc':
        FFI::memset($c->malloc((int) $_GET['bytes']), 1, (int) $_GET['bytes']);
        break;
    case 'date':
        echo (new IntlDateFormatter('de_DE', IntlDateFormatter::FULL, IntlDateFormatter::FULL))->format(0);
        break;
    case 'patterns':
        for ($i = 0; $i < 20; $i++) {
            preg_match("/x{$i}[a-z]*(y|z)/", 'xay');
        }
        break;
    case 'locale':
        setlocale(LC_ALL, 'C.UTF-8', 'C.utf8');
        break;
    case 'child':
        shell_exec('true');
        break;
}
ob_end_clean();
echo 'done';
