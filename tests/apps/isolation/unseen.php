<?php

/**
 * A boot without objects whose destruction has observable effects, and requests that might observe
 * that their destruction was skipped.
 */

declare(strict_types=1);

use Isolation\Unseen\Node;
use Isolation\Unseen\Speaker;

require __DIR__ . '/src/Unseen/Node.php';
require __DIR__ . '/src/Unseen/Speaker.php';
require __DIR__ . '/src/Unseen/Sink.php';
require __DIR__ . '/src/unseen.php';

const NODES = 5000;

$graph = new Node();
for ($i = 0; $i < NODES; $i++) {
    $graph->below[] = new Node(str_repeat('.', 30));
}
$lone = new Node();
stream_wrapper_register('sink', Isolation\Unseen\Sink::class);
if (function_exists('Samovar\checkpoint')) {
    Samovar\checkpoint();
}
$how = $_GET['how'];
if ($how === 'names') {
    echo json_encode(array_keys(Isolation\Unseen\ends()));
} elseif ($how === 'told') {
    echo (string) @file_get_contents($_GET['folder'] . '/told');
} else {
    Speaker::$file = $_GET['folder'] . '/told';
    @unlink(Speaker::$file);
    echo "page\n";
    Isolation\Unseen\ends()[$how]();
}
