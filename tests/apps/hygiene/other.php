<?php

// A script in the document root of the resident front controller.
static $runs = 0;
$runs++;
echo json_encode([
    'runs' => $runs,
    'pid' => getmypid(),
    'class' => class_exists('Hygiene\Counter'),
    'globals' => isset($lives),
    'precision' => ini_get('precision'),
]);
