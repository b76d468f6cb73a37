@extends('layout')

@section('title', "Item $id")

@section('content')
    <h1>Item {{ $id }}</h1>
@endsection
