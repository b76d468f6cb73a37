<?php

echo 'front controller ';
include __DIR__ . '/dump.php';
