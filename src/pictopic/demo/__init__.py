"""Made-up scenes, the demonstration that learns from them, and its report in one HTML file."""
