<?php

echo ini_get('memory_limit');
