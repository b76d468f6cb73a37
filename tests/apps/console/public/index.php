<?php

echo json_encode(require __DIR__ . '/../lib/' . ($_GET['file'] ?? 'first') . '.php');
