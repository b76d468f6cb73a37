<?php

echo ' after';
