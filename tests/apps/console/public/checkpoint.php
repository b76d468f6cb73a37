<?php

Samovar\checkpoint();
require __DIR__ . '/index.php';
