<?php

include __DIR__ . "/../dump.php";
